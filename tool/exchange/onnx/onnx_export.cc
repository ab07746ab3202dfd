#include "tool/exchange/onnx/onnx_export.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "cluster/checkpoint/evaluated_array.h"
#include "cluster/checkpoint/model/checkpoint_job.h"
#include "storage/checkpoint_reader.h"
#include "storage/tensor_files/staged_file.h"
#include "tool/checkpoint/checkpoint_values.h"
#include "tool/exchange/export_companions.h"
#include "tool/exchange/onnx/onnx_graph.h"
#include "tool/exchange/onnx/onnx_model.h"

namespace parasol {
namespace {

// Ids take 10 bytes of a file, which has 2 GiB at most.
constexpr char kImageInput[] = "image";
constexpr size_t kMaxIds = size_t{1} << 27;

// Tensors begin at a multiple of this, so that a reader may map the file.
constexpr uint64_t kAlignment = 4096;

// Takes the next elements of a tensor.
using TakeFloats =
    absl::FunctionRef<absl::Status(absl::Span<const float> values)>;

int64_t BytesOf(const onnx::TensorProto& tensor) {
  int64_t bytes = sizeof(float);
  for (const int64_t size : tensor.dims()) bytes *= size;
  return bytes;
}

absl::string_view AsBytes(absl::Span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(float)};
}

// The value that every element of a new row has; 0 if they differ.
float ConstantOf(const job::Initializer& initializer) {
  return initializer.has_constant() ? initializer.constant().value() : 0;
}

// The tensors of one checkpoint's model.
class ModelTensors {
 public:
  ModelTensors(const CheckpointReader& checkpoint, const job::Model& model,
               bool averages)
      : checkpoint_(checkpoint), averages_(averages) {
    for (const auto& variable : checkpoint.manifest().variable()) {
      variables_.emplace(variable.name(), &variable);
    }
    for (const job::SparseTable& table : model.sparse_table()) {
      tables_.emplace(OnnxRowsName(table.name()), &table);
    }
  }

  // Returns the ids of all tables, in the order in which Read() gives the rows.
  absl::StatusOr<OnnxTableIds> ReadIds() const {
    OnnxTableIds ids;
    for (const auto& [name, table] : tables_) {
      std::vector<int64_t>& of_table = ids[table->name()];
      RETURN_IF_ERROR(
          checkpoint_.ReadRows(table->name(), [&](const RowBatch& batch) {
            of_table.insert(of_table.end(), batch.ids.begin(), batch.ids.end());
            return CheckNumber(table->name(), of_table.size());
          }));
    }
    return ids;
  }

  // Gives all elements of an initializer to `take`. Does nothing for one that
  // has its elements already.
  absl::Status Read(const onnx::TensorProto& tensor, TakeFloats take) const {
    const auto table = tables_.find(tensor.name());
    if (table != tables_.end()) return ReadRows(*table->second, take);
    const durable::CheckpointVariable& variable = *variables_.at(tensor.name());
    int array = kValueArray;
    if (averages_) {
      ASSIGN_OR_RETURN(array, EvaluatedArray(checkpoint_, variable));
    }
    return VisitElements(checkpoint_, variable, array,
                         [&](int64_t, absl::Span<const float> values) {
                           return take(values);
                         })
        .status();
  }

 private:
  static absl::Status CheckNumber(const std::string& table, size_t ids) {
    if (ids <= kMaxIds) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("table ", table, " has more than ", kMaxIds,
                     " rows, which an ONNX file can't list; export it with "
                     "another --format"));
  }

  absl::Status ReadRows(const job::SparseTable& table, TakeFloats take) const {
    const size_t width = table.width();
    std::vector<float> values;
    RETURN_IF_ERROR(
        checkpoint_.ReadRows(table.name(), [&](const RowBatch& batch) {
          // A shard without rows has an entry of none.
          if (batch.ids.empty()) return absl::OkStatus();
          values.clear();
          const size_t floats = batch.rows.size() / batch.ids.size();
          for (size_t i = 0; i < batch.ids.size(); ++i) {
            const auto row = batch.rows.subspan(i * floats, width);
            values.insert(values.end(), row.begin(), row.end());
          }
          return take(values);
        }));
    values.assign(width, ConstantOf(table.initializer()));
    return take(values);
  }

  const CheckpointReader& checkpoint_;
  const bool averages_;
  std::map<std::string, const durable::CheckpointVariable*> variables_;
  std::map<std::string, const job::SparseTable*> tables_;
};

void AddPair(
    absl::string_view key, absl::string_view value,
    google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>& pairs) {
  onnx::StringStringEntryProto& pair = *pairs.Add();
  pair.set_key(std::string(key));
  pair.set_value(std::string(value));
}

onnx::ModelProto ModelOf(onnx::GraphProto graph,
                         const durable::CheckpointManifest& manifest) {
  onnx::ModelProto model;
  model.set_ir_version(kOnnxIrVersion);
  model.set_producer_name("parasol");
  model.set_producer_version(kVersion);
  model.add_opset_import()->set_version(kOnnxOpset);
  onnx::OperatorSetIdProto& ml = *model.add_opset_import();
  ml.set_domain("ai.onnx.ml");
  ml.set_version(kOnnxMlOpset);
  AddPair("job", manifest.job().name(), *model.mutable_metadata_props());
  AddPair("global_step", absl::StrCat(manifest.global_step()),
          *model.mutable_metadata_props());
  graph.set_name(manifest.job().name());
  *model.mutable_graph() = std::move(graph);
  return model;
}

// Writes a tensor's elements to the data file and says in `tensor` where.
absl::Status WriteOutside(const ModelTensors& tensors,
                          absl::string_view location, StagedFile& data,
                          onnx::TensorProto& tensor) {
  const uint64_t gap = (kAlignment - data.size() % kAlignment) % kAlignment;
  RETURN_IF_ERROR(data.Append(std::string(gap, '\0')));
  const uint64_t offset = data.size();
  RETURN_IF_ERROR(tensors.Read(tensor, [&data](absl::Span<const float> values) {
    return data.Append(AsBytes(values));
  }));
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  AddPair("location", location, *tensor.mutable_external_data());
  AddPair("offset", absl::StrCat(offset), *tensor.mutable_external_data());
  AddPair("length", absl::StrCat(data.size() - offset),
          *tensor.mutable_external_data());
  return absl::OkStatus();
}

absl::Status WriteInside(const ModelTensors& tensors,
                         onnx::TensorProto& tensor) {
  std::string& bytes = *tensor.mutable_raw_data();
  return tensors.Read(tensor, [&bytes](absl::Span<const float> values) {
    absl::StrAppend(&bytes, AsBytes(values));
    return absl::OkStatus();
  });
}

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Adds the elements of the tensors that have none yet: to `data`, if they are
// more than options.inline_bytes together, which makes `data`.
absl::Status AddElements(const ModelTensors& tensors,
                         const OnnxExportOptions& options,
                         onnx::GraphProto& graph,
                         std::optional<StagedFile>& data) {
  std::vector<onnx::TensorProto*> missing;
  int64_t bytes = 0;
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    if (tensor.has_raw_data()) continue;
    missing.push_back(&tensor);
    bytes += BytesOf(tensor);
  }
  const std::string path = absl::StrCat(options.output, ".data");
  if (bytes > options.inline_bytes) {
    ASSIGN_OR_RETURN(StagedFile file, StagedFile::Create(path));
    data.emplace(std::move(file));
  }
  for (onnx::TensorProto* const tensor : missing) {
    RETURN_IF_ERROR(data.has_value()
                        ? WriteOutside(tensors, BaseName(path), *data, *tensor)
                        : WriteInside(tensors, *tensor));
  }
  return absl::OkStatus();
}

// The graph of the job, of whose images the input is called as `parasol serve`
// calls it.
Graph NamedAsServed(const LoadedJob& loaded) {
  const job::Job& job = loaded.job;
  const job::Dataset& data = job.has_eval() ? job.eval() : job.train();
  Graph graph = loaded.graph;
  if ((data.has_idx() || data.has_cifar()) && graph.inputs.size() == 1) {
    graph.inputs[0].name = kImageInput;
  }
  return graph;
}

}  // namespace

absl::Status ExportOnnx(const std::string& path,
                        const OnnxExportOptions& options) {
  ASSIGN_OR_RETURN(const std::string directory, CheckpointAt(path));
  ASSIGN_OR_RETURN(const LoadedJob loaded, JobOfCheckpoint(directory, {}));
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   OpenCheckpointAt(directory));
  const job::Model& spec = loaded.job.model();
  const Graph graph_of_job = NamedAsServed(loaded);
  const ModelTensors tensors(*checkpoint, spec, options.averages);
  ASSIGN_OR_RETURN(const OnnxTableIds ids, tensors.ReadIds());
  ASSIGN_OR_RETURN(onnx::GraphProto graph,
                   MakeOnnxGraph(spec, graph_of_job, ids));
  std::optional<StagedFile> data;
  RETURN_IF_ERROR(AddElements(tensors, options, graph, data));
  RETURN_IF_ERROR(checkpoint->Verify());
  const onnx::ModelProto proto =
      ModelOf(std::move(graph), checkpoint->manifest());
  std::string bytes;
  if (proto.ByteSizeLong() > INT32_MAX || !proto.SerializeToString(&bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory, ": its tables' ids make an ONNX model of ",
                     proto.ByteSizeLong(), " bytes, of at most ", INT32_MAX,
                     "; export the tensors with another --format"));
  }
  ASSIGN_OR_RETURN(StagedFile model, StagedFile::Create(options.output));
  RETURN_IF_ERROR(model.Append(bytes));
  RETURN_IF_ERROR(WriteExportCompanions(loaded.job, options.output));
  if (data.has_value()) {
    RETURN_IF_ERROR(data->Commit());
  }
  return model.Commit();
}

}  // namespace parasol

#include "tool/exchange/exported_tensors.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/evaluated_array.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "storage/checkpoint_manifest.h"
#include "tool/checkpoint/checkpoint_values.h"
#include "tool/exchange/tensor_names.h"

namespace parasol {
namespace {

template <typename T>
absl::string_view BytesOfSpan(absl::Span<const T> values) {
  return absl::string_view(reinterpret_cast<const char*>(values.data()),
                           values.size() * sizeof(T));
}

// Collects rows until a part is full, then writes ids, rows and slots, each as
// a part of its tensor.
class RowParts {
 public:
  // `widths`: of the first arrays of a row, which are to be written.
  RowParts(std::vector<size_t> widths, size_t rows_of_part,
           TensorWriter& writer)
      : widths_(std::move(widths)),
        rows_of_part_(rows_of_part),
        arrays_(widths_.size()),
        writer_(writer) {}

  absl::Status Add(const RowBatch& batch) {
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      const size_t floats = batch.rows.size() / batch.ids.size();
      ids_.push_back(batch.ids[i]);
      absl::Span<const float> left = batch.rows.subspan(i * floats, floats);
      for (size_t array = 0; array < arrays_.size(); ++array) {
        const auto values = left.subspan(0, widths_[array]);
        arrays_[array].insert(arrays_[array].end(), values.begin(),
                              values.end());
        left.remove_prefix(values.size());
      }
      if (ids_.size() == rows_of_part_) {
        RETURN_IF_ERROR(Flush());
      }
    }
    return absl::OkStatus();
  }

  absl::Status Flush() {
    RETURN_IF_ERROR(writer_.Append(BytesOfSpan<uint64_t>(ids_)));
    ids_.clear();
    for (std::vector<float>& array : arrays_) {
      RETURN_IF_ERROR(writer_.Append(BytesOfSpan<float>(array)));
      array.clear();
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<size_t> widths_;
  const size_t rows_of_part_;
  std::vector<uint64_t> ids_;
  std::vector<std::vector<float>> arrays_;
  TensorWriter& writer_;
};

absl::Status WriteScalar(int64_t value, TensorWriter& writer) {
  return writer.Append(BytesOfSpan<int64_t>({value}));
}

}  // namespace

absl::StatusOr<ExportedTensors> ExportedTensors::Plan(
    const CheckpointReader& checkpoint, const Options& options) {
  ExportedTensors tensors(checkpoint, options);
  const durable::CheckpointManifest& manifest = checkpoint.manifest();
  if (options.counts) {
    tensors.parts_ = {
        WholeTensor({std::string(kGlobalStepName), ElementType::kInt64, {}}),
        WholeTensor({IterationsName(manifest.job().optimizer()),
                     ElementType::kInt64,
                     {}})};
  }
  RETURN_IF_ERROR(tensors.AddVariables());
  for (int i = 0; i < manifest.table_size(); ++i) {
    RETURN_IF_ERROR(tensors.AddTable(i));
  }
  return tensors;
}

absl::Status ExportedTensors::AddVariables() {
  const durable::CheckpointManifest& manifest = checkpoint_->manifest();
  for (const durable::CheckpointVariable& variable : manifest.variable()) {
    TensorInfo info = {variable.name(),
                       ElementType::kFloat32,
                       {variable.shape().begin(), variable.shape().end()}};
    ASSIGN_OR_RETURN(const int64_t elements, ElementsOf(variable));
    float first = 0;
    ASSIGN_OR_RETURN(
        const int64_t updates,
        checkpoint_->ReadElements(variable.name(), kValueArray, 0,
                                  absl::MakeSpan(&first, elements > 0)));
    updates_ = std::max(updates_, updates);
    parts_.push_back(WholeTensor(info));
    for (int slot = 0; slot + 1 < ArraysOf(variable.slot_size()); ++slot) {
      info.name = SlotName(OptimizerOfVariable(variable.name(), manifest.job()),
                           variable.name(), variable.slot(slot));
      parts_.push_back(WholeTensor(info));
    }
  }
  return absl::OkStatus();
}

std::vector<size_t> ExportedTensors::WidthsOf(
    const durable::CheckpointTable& table) const {
  std::vector<size_t> widths = {table.width()};
  for (int slot = 0; slot + 1 < ArraysOf(table.slot_size()); ++slot) {
    widths.push_back(SlotWidthOf(table, slot));
  }
  return widths;
}

absl::Status ExportedTensors::AddTable(int index) {
  const durable::CheckpointManifest& manifest = checkpoint_->manifest();
  const durable::CheckpointTable& table = manifest.table(index);
  int64_t rows = 0;
  RETURN_IF_ERROR(
      checkpoint_->ReadRows(table.name(), [&](const RowBatch& batch) {
        rows += static_cast<int64_t>(batch.ids.size());
        updates_ = std::max(updates_, batch.updates);
        return absl::OkStatus();
      }));
  const std::vector<size_t> widths = WidthsOf(table);
  const size_t floats =
      std::accumulate(widths.begin(), widths.end(), size_t{0});
  const auto bytes_of_row =
      static_cast<int64_t>(sizeof(uint64_t) + floats * sizeof(float));
  const int64_t rows_of_part = std::max<int64_t>(
      1, static_cast<int64_t>(options_.part_bytes) / bytes_of_row);
  const int64_t parts =
      std::max<int64_t>(1, (rows + rows_of_part - 1) / rows_of_part);
  tables_.push_back({.rows = rows, .rows_of_part = rows_of_part});
  std::vector<TensorInfo> tensors = {
      {IdsName(table.name()), options_.ids, {rows}},
      {RowsName(table.name()),
       ElementType::kFloat32,
       {rows, static_cast<int64_t>(widths[0])}}};
  for (size_t array = 1; array < widths.size(); ++array) {
    tensors.push_back({SlotName(OptimizerOfTable(table.name(), manifest.job()),
                                RowsName(table.name()),
                                table.slot(static_cast<int>(array) - 1)),
                       ElementType::kFloat32,
                       {rows, static_cast<int64_t>(widths[array])}});
  }
  for (int64_t part = 0; part < parts; ++part) {
    for (const TensorInfo& tensor : tensors) {
      const int64_t first = part * rows_of_part;
      parts_.push_back({.tensor = tensor,
                        .first_row = first,
                        .rows = std::min(rows_of_part, rows - first),
                        .part = part,
                        .parts = parts});
    }
  }
  return absl::OkStatus();
}

absl::Status ExportedTensors::Write(TensorWriter& writer) const {
  if (options_.counts) {
    RETURN_IF_ERROR(WriteScalar(checkpoint_->manifest().global_step(), writer));
    RETURN_IF_ERROR(WriteScalar(updates_, writer));
  }
  RETURN_IF_ERROR(WriteVariables(writer));
  for (size_t i = 0; i < tables_.size(); ++i) {
    RETURN_IF_ERROR(WriteTable(static_cast<int>(i), writer));
  }
  return checkpoint_->Verify();
}

absl::StatusOr<int> ExportedTensors::SourceOf(
    const durable::CheckpointVariable& variable, int array) const {
  if (array != kValueArray || !options_.averages) return array;
  return EvaluatedArray(*checkpoint_, variable);
}

absl::Status ExportedTensors::WriteVariables(TensorWriter& writer) const {
  for (const auto& variable : checkpoint_->manifest().variable()) {
    for (int array = 0; array < ArraysOf(variable.slot_size()); ++array) {
      ASSIGN_OR_RETURN(const int source, SourceOf(variable, array));
      RETURN_IF_ERROR(
          VisitElements(*checkpoint_, variable, source,
                        [&](int64_t, absl::Span<const float> values) {
                          return writer.Append(BytesOfSpan<float>(values));
                        })
              .status());
    }
  }
  return absl::OkStatus();
}

absl::Status ExportedTensors::WriteTable(int index,
                                         TensorWriter& writer) const {
  const durable::CheckpointTable& table = checkpoint_->manifest().table(index);
  RowParts parts(WidthsOf(table), tables_[index].rows_of_part, writer);
  RETURN_IF_ERROR(checkpoint_->ReadRows(
      table.name(),
      [&parts](const RowBatch& batch) { return parts.Add(batch); }));
  return parts.Flush();
}

}  // namespace parasol

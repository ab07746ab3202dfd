#include "loop/file_data.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "loop/core/stream.h"
#include "ml/input/input_pipeline.h"
#include "proto/job.pb.h"

namespace parasol::loop {
namespace {

// What all streams of a data set read.
struct OpenedData {
  std::unique_ptr<InputPipeline> examples;
  FileData::Label label;
  // Of each input, in the model's order.
  std::vector<bool> is_ids;
  InputOptions options;
};

Tensor DenseTensor(const DenseFeature& feature, int64_t examples) {
  TensorShape shape = {examples};
  for (const int64_t size : feature.shape) shape.Append(size);
  return Tensor::Of(feature.values, shape);
}

// All examples have as many ids.
Tensor IdTensor(const IdFeature& feature, int64_t examples) {
  if (!feature.weights.empty()) {
    return Tensor::Error(absl::InvalidArgumentError(
        "the data set gives ids weights, which tensors of ids do not have: "
        "read it as a dense input"));
  }
  const auto ids = static_cast<int64_t>(feature.ids.size());
  const int64_t each = examples == 0 ? 0 : ids / examples;
  for (int64_t i = 0; i <= examples; ++i) {
    if (feature.offsets[i] == i * each) continue;
    return Tensor::Error(absl::InvalidArgumentError(absl::StrCat(
        "an example has ", feature.offsets[i] - feature.offsets[i - 1],
        " ids, and others ", each,
        ": a tensor has as many of each; choose columns that have an id for "
        "every value")));
  }
  const std::vector<int64_t> numbers(feature.ids.begin(), feature.ids.end());
  return Tensor::Ints(numbers, {examples, each});
}

absl::StatusOr<Batch> BatchOf(const parasol::Batch& from,
                              const std::vector<bool>& is_ids,
                              FileData::Label label) {
  Batch batch;
  size_t dense = 0, ids = 0;
  for (const bool reads_ids : is_ids) {
    batch.tensors.push_back(reads_ids
                                ? IdTensor(from.ids[ids++], from.size)
                                : DenseTensor(from.dense[dense++], from.size));
  }
  if (label == FileData::Label::kClass) {
    const std::vector<int64_t> classes(from.labels.begin(), from.labels.end());
    batch.tensors.push_back(Tensor::Ints(classes, {from.size}));
  } else if (label == FileData::Label::kNumbers) {
    const int64_t width =
        from.size == 0 ? 1
                       : static_cast<int64_t>(from.labels.size()) / from.size;
    batch.tensors.push_back(Tensor::Of(from.labels, {from.size, width}));
  }
  for (const Tensor& tensor : batch.tensors) RETURN_IF_ERROR(tensor.status());
  return batch;
}

class FileStream : public Stream {
 public:
  FileStream(std::unique_ptr<InputPipeline> pipeline,
             std::shared_ptr<const OpenedData> opened)
      : pipeline_(std::move(pipeline)), opened_(std::move(opened)) {}

  absl::StatusOr<std::optional<Batch>> Next() override {
    ASSIGN_OR_RETURN(const parasol::Batch* const batch, pipeline_->Next());
    if (batch == nullptr) return std::nullopt;
    return BatchOf(*batch, opened_->is_ids, opened_->label);
  }

 private:
  const std::unique_ptr<InputPipeline> pipeline_;
  const std::shared_ptr<const OpenedData> opened_;
};

template <typename Message>
absl::Status Parse(absl::string_view what, const std::string& text,
                   Message& message) {
  if (google::protobuf::TextFormat::ParseFromString(text, &message)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("`", text, "` is no ", what, ": write it as in a job file"));
}

LabelForm FormOf(const FileData& data) {
  if (data.label == FileData::Label::kNone) {
    return {.kind = LabelForm::Kind::kNone, .width = 0};
  }
  if (data.label == FileData::Label::kClass) {
    return {.kind = LabelForm::Kind::kClass};
  }
  return {.kind = LabelForm::Kind::kNumbers, .width = data.label_width};
}

}  // namespace

absl::StatusOr<Dataset> FromFiles(const FileData& data) {
  job::Dataset dataset;
  job::Model model;
  RETURN_IF_ERROR(Parse("data set", data.dataset, dataset));
  RETURN_IF_ERROR(Parse("list of inputs", data.inputs, model));
  ASSIGN_OR_RETURN(const ModelInputs inputs,
                   ModelInputsOf(model, FormOf(data)));
  auto opened = std::make_shared<OpenedData>();
  opened->label = data.label;
  for (const job::ModelInput& input : model.input()) {
    opened->is_ids.push_back(input.has_ids());
  }
  if (model.input().empty()) opened->is_ids.push_back(false);
  opened->options = {.data_dir = data.data_dir, .seed = data.seed};
  ASSIGN_OR_RETURN(opened->examples,
                   InputPipeline::Open(dataset, inputs, opened->options));
  return Dataset::FromStream(
      [opened](int64_t epoch) -> absl::StatusOr<std::unique_ptr<Stream>> {
        InputOptions options = opened->options;
        options.seed += static_cast<uint64_t>(epoch);
        ASSIGN_OR_RETURN(std::unique_ptr<InputPipeline> pipeline,
                         opened->examples->OpenAgain(options));
        return std::make_unique<FileStream>(std::move(pipeline), opened);
      });
}

}  // namespace parasol::loop

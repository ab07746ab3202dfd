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
  InputOptions options;
};

Tensor DenseTensor(const DenseFeature& feature, int64_t examples) {
  TensorShape shape = {examples};
  for (const int64_t size : feature.shape) shape.Append(size);
  return Tensor::Of(feature.values, shape);
}

absl::StatusOr<Batch> BatchOf(const parasol::Batch& from,
                              FileData::Label label) {
  Batch batch;
  for (const DenseFeature& feature : from.dense) {
    batch.tensors.push_back(DenseTensor(feature, from.size));
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
  FileStream(std::unique_ptr<InputPipeline> pipeline, FileData::Label label)
      : pipeline_(std::move(pipeline)), label_(label) {}

  absl::StatusOr<std::optional<Batch>> Next() override {
    ASSIGN_OR_RETURN(const parasol::Batch* const batch, pipeline_->Next());
    if (batch == nullptr) return std::nullopt;
    return BatchOf(*batch, label_);
  }

 private:
  const std::unique_ptr<InputPipeline> pipeline_;
  const FileData::Label label_;
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
  for (const job::ModelInput& input : model.input()) {
    if (input.has_ids()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", input.name(), " has ids: FromFiles() reads dense inputs"));
    }
  }
  ASSIGN_OR_RETURN(const ModelInputs inputs,
                   ModelInputsOf(model, FormOf(data)));
  auto opened = std::make_shared<OpenedData>();
  opened->label = data.label;
  opened->options = {.data_dir = data.data_dir, .seed = data.seed};
  ASSIGN_OR_RETURN(opened->examples,
                   InputPipeline::Open(dataset, inputs, opened->options));
  return Dataset::FromStream(
      [opened](int64_t epoch) -> absl::StatusOr<std::unique_ptr<Stream>> {
        InputOptions options = opened->options;
        options.seed += static_cast<uint64_t>(epoch);
        ASSIGN_OR_RETURN(std::unique_ptr<InputPipeline> pipeline,
                         opened->examples->OpenAgain(options));
        return std::make_unique<FileStream>(std::move(pipeline), opened->label);
      });
}

}  // namespace parasol::loop

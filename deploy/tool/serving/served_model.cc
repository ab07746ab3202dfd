#include "deploy/tool/serving/served_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/job/job_file.h"
#include "deploy/tool/checkpoint/checkpoint_job.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/model/check_batch.h"

namespace parasol {
namespace {

constexpr size_t kMaxShownBytes = 60;

void Sigmoid(absl::Span<float> values) {
  for (float& value : values) {
    value = static_cast<float>(1 / (1 + std::exp(-double{value})));
  }
}

// Softmax of each row of `width` values.
void Softmax(int64_t width, absl::Span<float> values) {
  for (size_t row = 0; row < values.size(); row += width) {
    const absl::Span<float> outputs = values.subspan(row, width);
    const float largest = *std::max_element(outputs.begin(), outputs.end());
    double sum = 0;
    for (const float output : outputs)
      sum += std::exp(double{output} - largest);
    for (float& output : outputs) {
      output = static_cast<float>(std::exp(double{output} - largest) / sum);
    }
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<ServedModel>> ServedModel::Load(
    const std::string& directory, const Options& options, Clock& clock,
    ServingMetrics& metrics) {
  ASSIGN_OR_RETURN(const LoadedJob loaded,
                   JobOfCheckpoint(directory, options.overrides));
  const job::Job& job = loaded.job;
  const job::Dataset& dataset = job.has_eval() ? job.eval() : job.train();
  ASSIGN_OR_RETURN(const ModelInputs inputs,
                   ModelInputsOf(job.model(), loaded.graph.loss.label));
  ASSIGN_OR_RETURN(GivenExamples form, GivenExamples::Create(dataset, inputs),
                   _ << directory << ": can't be served");
  ASSIGN_OR_RETURN(std::shared_ptr<CheckpointModel> model,
                   CheckpointModel::Create(job, loaded.graph, options.model));
  ASSIGN_OR_RETURN(const durable::CheckpointManifest manifest,
                   model->Load(directory));
  return std::make_shared<ServedModel>(
      Parts{
          .form = std::move(form),
          .graph = loaded.graph,
          .compute = [model = std::move(model)](
                         const Batch& batch) { return model->Outputs(batch); },
          .version = manifest.global_step(),
          .outputs = loaded.graph.outputs(),
          .loss = job.model().loss()},
      options.batches, clock, metrics);
}

ServedModel::ServedModel(Parts parts, const BatchLimits& batches, Clock& clock,
                         ServingMetrics& metrics)
    : parts_(std::move(parts)),
      link_(LinkOf(parts_.loss)),
      runner_(parts_.compute, batches, clock, metrics) {}

ModelSignature ServedModel::Signature(const std::string& model) const {
  ModelSignature signature = {
      .model = model,
      .version = version(),
      .columns = form().columns(),
      .signatures = {{kDefaultSignature, kDefaultOutput}},
      .outputs = outputs()};
  if (link_ != OutputLink::kNone) {
    signature.signatures.emplace_back(kProbabilitySignature,
                                      kProbabilityOutput);
  }
  return signature;
}

absl::StatusOr<std::string> ServedModel::OutputOf(
    absl::string_view signature) const {
  if (signature.empty() || signature == kDefaultSignature) {
    return kDefaultOutput;
  }
  if (link_ != OutputLink::kNone && signature == kProbabilitySignature) {
    return kProbabilityOutput;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the model has no signature \"",
      absl::CHexEscape(signature.substr(0, kMaxShownBytes)), "\"; it has ",
      kDefaultSignature,
      link_ == OutputLink::kNone ? ""
                                 : absl::StrCat(", ", kProbabilitySignature)));
}

absl::StatusOr<std::vector<float>> ServedModel::Predict(
    absl::string_view signature, Batch batch, absl::Time deadline) {
  RETURN_IF_ERROR(CheckBatch(parts_.graph, batch));
  ASSIGN_OR_RETURN(std::vector<float> outputs,
                   runner_.Predict(std::move(batch), deadline));
  if (signature != kProbabilitySignature) return outputs;
  if (link_ == OutputLink::kSigmoid) Sigmoid(absl::MakeSpan(outputs));
  if (link_ == OutputLink::kSoftmax)
    Softmax(parts_.outputs, absl::MakeSpan(outputs));
  return outputs;
}

}  // namespace parasol

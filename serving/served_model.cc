#include "serving/served_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/model/checkpoint_job.h"
#include "cluster/job/job_file.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/model/check_batch.h"
#include "ml/model/graph_inputs.h"

namespace parasol {
namespace {

std::vector<OutputLink> LinksOf(const Graph& graph) {
  std::vector<OutputLink> links;
  for (const OutputSpec& output : graph.outputs) {
    links.push_back(LinkOf(output.loss.loss));
  }
  return links;
}

bool HasLink(const std::vector<OutputLink>& links) {
  return std::any_of(links.begin(), links.end(),
                     [](OutputLink link) { return link != OutputLink::kNone; });
}

}  // namespace

absl::StatusOr<std::shared_ptr<ServedModel>> ServedModel::Load(
    const std::string& directory, const Options& options, Clock& clock,
    ServingMetrics& metrics, const ServedModel* served) {
  ASSIGN_OR_RETURN(const LoadedJob loaded,
                   JobOfCheckpoint(directory, options.overrides));
  const job::Job& job = loaded.job;
  const job::Dataset& dataset = job.has_eval() ? job.eval() : job.train();
  ASSIGN_OR_RETURN(const ModelInputs inputs,
                   InputsOf(job.model(), loaded.graph));
  ASSIGN_OR_RETURN(GivenExamples form, GivenExamples::Create(dataset, inputs),
                   _ << directory << ": can't be served");
  ASSIGN_OR_RETURN(std::shared_ptr<CheckpointModel> model,
                   CheckpointModel::Create(job, loaded.graph, options.model));
  ASSIGN_OR_RETURN(
      const durable::CheckpointManifest manifest,
      model->LoadBehind(
          served == nullptr ? nullptr : served->parts_.values.get(),
          directory));
  return std::make_shared<ServedModel>(
      Parts{.form = std::move(form),
            .graph = loaded.graph,
            .compute =
                [model](const Batch& batch) { return model->Outputs(batch); },
            .version = manifest.global_step(),
            .written = absl::FromUnixMicros(manifest.created_unix_micros()),
            .values = model},
      options.batches, clock, metrics);
}

ServedModel::ServedModel(Parts parts, const BatchLimits& batches, Clock& clock,
                         ServingMetrics& metrics)
    : parts_(std::move(parts)),
      links_(LinksOf(parts_.graph)),
      runner_(parts_.compute, batches, clock, metrics) {}

ModelSignature ServedModel::Signature(const std::string& model) const {
  ModelSignature signature = {
      .model = model,
      .version = version(),
      .columns = form().columns(),
      .signatures = {{kDefaultSignature, Outputs(kDefaultOutput)}}};
  if (HasLink(links_)) {
    signature.signatures.emplace_back(kProbabilitySignature,
                                      Outputs(kProbabilityOutput));
  }
  return signature;
}

std::vector<SignatureOutput> ServedModel::Outputs(
    absl::string_view name) const {
  std::vector<SignatureOutput> outputs;
  for (const OutputSpec& output : parts_.graph.outputs) {
    outputs.push_back(
        {.name = output.is_named() ? output.name : std::string(name),
         .width = output.loss.outputs});
  }
  return outputs;
}

absl::StatusOr<std::vector<SignatureOutput>> ServedModel::OutputsOf(
    absl::string_view signature) const {
  if (signature.empty() || signature == kDefaultSignature) {
    return Outputs(kDefaultOutput);
  }
  if (HasLink(links_) && signature == kProbabilitySignature) {
    return Outputs(kProbabilityOutput);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the model has no signature \"", ShownText(signature), "\"; it has ",
      kDefaultSignature,
      HasLink(links_) ? absl::StrCat(", ", kProbabilitySignature) : ""));
}

absl::StatusOr<std::vector<float>> ServedModel::Predict(
    absl::string_view signature, Batch batch, absl::Time deadline) {
  RETURN_IF_ERROR(CheckBatch(parts_.graph, batch));
  ASSIGN_OR_RETURN(std::vector<float> outputs,
                   runner_.Predict(std::move(batch), deadline));
  if (signature != kProbabilitySignature) return outputs;
  for (size_t first = 0; first < outputs.size();) {
    for (size_t i = 0; i < links_.size(); ++i) {
      const int64_t width = parts_.graph.outputs[i].loss.outputs;
      ApplyLink(links_[i], absl::MakeSpan(outputs).subspan(first, width));
      first += width;
    }
  }
  return outputs;
}

}  // namespace parasol

#include "tool/prediction/prediction_run.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "cluster/checkpoint/model/checkpoint_job.h"
#include "cluster/job/job_file.h"
#include "ml/input/epoch_batches.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/model/graph.h"
#include "ml/model/graph_inputs.h"
#include "tool/prediction/model_up_to.h"

namespace parasol {
namespace {

constexpr int kMaxShards = 1 << 20;

// Columns of labels and masks of a model's named outputs.
std::vector<std::string> LabelColumnsOf(const job::Model& model) {
  std::vector<std::string> columns;
  for (const job::Output& output : model.output()) {
    for (const std::string& column : {output.label().column(), output.mask()}) {
      if (!column.empty()) columns.push_back(column);
    }
  }
  return columns;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PredictionRun>> PredictionRun::Open(
    const std::string& path, const std::vector<std::string>& overrides,
    const Options& options) {
  ASSIGN_OR_RETURN(const std::string checkpoint, CheckpointAt(path));
  ASSIGN_OR_RETURN(LoadedJob loaded, JobOfCheckpoint(checkpoint, overrides));
  job::Job& job = loaded.job;
  if (!job.has_eval()) {
    return absl::InvalidArgumentError(absl::StrCat(
        checkpoint,
        ": its job has no eval data set; say which with --set=eval…"));
  }
  std::vector<std::string> label_columns;
  PredictionForm::Options form = options.form;
  if (!options.layer.empty()) {
    form.name = options.layer;
    form.raw = true;
    label_columns = LabelColumnsOf(job.model());
    ASSIGN_OR_RETURN(*job.mutable_model(),
                     ModelUpTo(job.model(), options.layer));
    ASSIGN_OR_RETURN(loaded.graph, ResolveGraph(job.model()),
                     _ << "--layer=" << options.layer);
  }
  std::unique_ptr<PredictionRun> run(new PredictionRun);
  ASSIGN_OR_RETURN(
      run->form_,
      PredictionForm::Create(loaded.graph.outputs, LabelsOfOutputs(job), form));
  RETURN_IF_ERROR(run->OpenExamples(job, loaded.graph, label_columns, options));
  ASSIGN_OR_RETURN(run->model_,
                   CheckpointModel::Create(job, loaded.graph, options.compute));
  RETURN_IF_ERROR(run->model_->Load(checkpoint).status());
  return run;
}

absl::Status PredictionRun::OpenExamples(
    const job::Job& job, const Graph& graph,
    const std::vector<std::string>& label_columns, const Options& options) {
  ASSIGN_OR_RETURN(ModelInputs inputs, InputsOf(job.model(), graph));
  inputs.kept = options.form.kept;
  job::Dataset in_order = job.eval();
  in_order.set_shuffle_buffer(0);
  InputOptions input = {.data_dir = options.data_dir,
                        .without_labels = true,
                        .label_columns = label_columns};
  ASSIGN_OR_RETURN(examples_, InputPipeline::Open(in_order, inputs, input));
  const int64_t all =
      BatchesOf(examples_->total_examples(), in_order.batch_size());
  const int64_t first = all * options.shard / options.num_shards;
  batches_ = all * (options.shard + 1) / options.num_shards - first;
  // Counts every batch, even if corrupt records leave nothing of it.
  input.repeat = true;
  input.first_batch = first;
  input.empty_batches = true;
  ASSIGN_OR_RETURN(examples_, examples_->OpenAgain(input));
  return absl::OkStatus();
}

absl::Status PredictionRun::Run(
    absl::FunctionRef<absl::Status(absl::Span<const PredictionValue>)> visit) {
  std::vector<absl::string_view> kept;
  for (int64_t batch_number = 0; batch_number < batches_; ++batch_number) {
    ASSIGN_OR_RETURN(const Batch* const batch, examples_->Next());
    if (batch->size == 0) continue;
    ASSIGN_OR_RETURN(const absl::Span<const float> outputs,
                     model_->Outputs(*batch));
    const size_t width = outputs.size() / static_cast<size_t>(batch->size);
    for (int64_t i = 0; i < batch->size; ++i) {
      kept.clear();
      for (const std::vector<std::string>& texts : batch->kept) {
        kept.push_back(texts[i]);
      }
      RETURN_IF_ERROR(
          visit(form_->Read(outputs.subspan(i * width, width), kept)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::pair<int, int>> ParseShard(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  int shard = 0;
  int num_shards = 0;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &shard) &&
      absl::SimpleAtoi(parts[1], &num_shards) && num_shards >= 1 &&
      num_shards <= kMaxShards && shard >= 0 && shard < num_shards) {
    return std::pair(shard, num_shards);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--shard=", text, ": is not a part of parts, as 0/4, 1/4, 2/4 and 3/4"));
}

}  // namespace parasol

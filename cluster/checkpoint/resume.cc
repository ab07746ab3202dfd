#include "cluster/checkpoint/resume.h"

#include <cstdint>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/job/changed_fields.h"
#include "cluster/job/evaluation_policy.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/message_differencer.h"
#include "ml/optimizer/assigned/optimizer_of.h"

namespace parasol {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::util::MessageDifferencer;

std::string Describe(const durable::CheckpointVariable& variable) {
  return absl::StrCat(variable.name(), " ", ShapeText(variable.shape()));
}

std::string Describe(const durable::CheckpointTable& table) {
  return absl::StrCat(table.name(), " of width ", table.width());
}

template <typename VariableOrTable>
std::string SlotsOf(const VariableOrTable& entry) {
  if (entry.slot().empty()) return "no slots";
  return absl::StrCat("slots ", absl::StrJoin(entry.slot(), ", "));
}

absl::Status Differs(absl::string_view was, absl::string_view is) {
  return absl::InvalidArgumentError(
      absl::StrCat("the checkpoint has ", was, ", the job has ", is,
                   ": use another checkpoint directory for another model"));
}

// `kind`: "variables".
template <typename Was, typename Is>
absl::Status CheckSame(absl::string_view kind, const Was& was, const Is& is) {
  if (was.size() != static_cast<int>(is.size())) {
    return Differs(absl::StrCat(was.size(), " ", kind),
                   absl::StrCat(is.size()));
  }
  for (int i = 0; i < was.size(); ++i) {
    if (Describe(was[i]) != Describe(is[i])) {
      return Differs(Describe(was[i]), Describe(is[i]));
    }
    if (SlotsOf(was[i]) != SlotsOf(is[i])) {
      return Differs(SlotsOf(was[i]), SlotsOf(is[i]));
    }
  }
  return absl::OkStatus();
}

std::string KindOf(const job::Optimizer& optimizer) {
  if (optimizer.has_custom()) {
    return absl::StrCat("optimizer custom \"",
                        absl::CHexEscape(optimizer.custom().type()), "\"");
  }
  const FieldDescriptor* const kind =
      job::Optimizer::descriptor()->FindFieldByNumber(optimizer.kind_case());
  return kind == nullptr ? "no optimizer"
                         : absl::StrCat("optimizer ", kind->name());
}

// Checks the optimizers of variables that are the same.
absl::Status CheckOptimizersOfLayers(
    const durable::CheckpointManifest& checkpoint, const job::Job& job) {
  for (const durable::CheckpointVariable& variable : checkpoint.variable()) {
    const std::string& name = variable.name();
    const std::string was = KindOf(OptimizerOfVariable(name, checkpoint.job()));
    const std::string is = KindOf(OptimizerOfVariable(name, job));
    if (was != is) return Differs(absl::StrCat(was, " for ", name), is);
  }
  return absl::OkStatus();
}

std::string NewRunId() {
  absl::BitGen random;
  return absl::StrFormat("%016x", absl::Uniform<uint64_t>(random));
}

}  // namespace

absl::StatusOr<ResumedRun> ResumeRun(const CheckpointStore& store,
                                     const job::Job& job,
                                     const CheckpointContents& contents,
                                     const std::set<int64_t>& damaged) {
  ResumedRun run;
  ASSIGN_OR_RETURN(run.checkpoint, FindCheckpoint(store, damaged));
  if (!run.checkpoint) {
    run.run_id = NewRunId();
    LOG(INFO) << "new run " << run.run_id;
    return run;
  }
  const durable::CheckpointManifest& checkpoint = *run.checkpoint;
  const std::string path = store.PathOf(checkpoint.global_step());
  RETURN_IF_ERROR(CheckResumable(checkpoint, job, contents)) << path;
  run.run_id = checkpoint.run_id();
  run.is_complete = IsComplete(checkpoint, job);
  if (run.is_complete) {
    LOG(INFO) << "nothing to do: run " << run.run_id << " is complete at step "
              << checkpoint.global_step() << ", " << path;
  } else {
    LOG(INFO) << "resuming at step " << checkpoint.global_step() << " of run "
              << run.run_id << " from " << path;
  }
  for (const std::string& changed : ChangedFields(checkpoint.job(), job)) {
    LOG(INFO) << "the job has changed since the checkpoint: " << changed;
  }
  return run;
}

absl::StatusOr<ResumedRun> ResumeIntactRun(const CheckpointStore& store,
                                           const job::Job& job,
                                           const CheckpointContents& contents,
                                           const Verification& verification) {
  std::set<int64_t> damaged;
  while (true) {
    ASSIGN_OR_RETURN(const auto found, FindCheckpoint(store, damaged));
    if (!found) break;
    const int64_t step = found->global_step();
    LOG(INFO) << "verifying " << store.PathOf(step);
    verification.on_begin(store.PathOf(step));
    const absl::Status verified = store.Verify(step, verification.cancelled);
    if (verified.ok()) break;
    if (!absl::IsDataLoss(verified) && !absl::IsNotFound(verified)) {
      return verified;
    }
    LOG(WARNING) << "passing over a damaged checkpoint: " << verified.message();
    damaged.insert(step);
  }
  ASSIGN_OR_RETURN(ResumedRun run, ResumeRun(store, job, contents, damaged));
  run.damaged = std::move(damaged);
  return run;
}

absl::StatusOr<std::optional<durable::CheckpointManifest>> FindCheckpoint(
    const CheckpointStore& store, const std::set<int64_t>& damaged) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> newest,
                   store.NewestComplete(damaged));
  if (newest) return store.ReadManifest(*newest);
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store.ListSteps());
  if (steps.empty()) return std::nullopt;
  return absl::DataLossError(absl::StrCat(
      "checkpoint directory ", store.directory(), ": none of its ",
      steps.size(), " checkpoints is intact; move them away to start anew"));
}

absl::Status CheckResumable(const durable::CheckpointManifest& checkpoint,
                            const job::Job& job,
                            const CheckpointContents& contents) {
  if (checkpoint.global_step() < 0 || checkpoint.global_step() >= kMaxSteps) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the checkpoint is of step ", checkpoint.global_step(),
        ", and jobs train the steps below 2^53; begin a new run "
        "with warm_start, or import the model with another --step"));
  }
  const bool had_local = checkpoint.job().parameter_server().has_local_steps();
  if (had_local != job.parameter_server().has_local_steps()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint is of a job with", had_local ? "" : "out",
                     " parameter_server.local_steps, whose steps are others; "
                     "begin a new run with warm_start"));
  }
  const std::string was = KindOf(checkpoint.job().optimizer());
  const std::string is = KindOf(job.optimizer());
  if (was != is) return Differs(was, is);
  RETURN_IF_ERROR(
      CheckSame("variables", checkpoint.variable(), contents.variables));
  RETURN_IF_ERROR(CheckOptimizersOfLayers(checkpoint, job));
  return CheckSame("sparse tables", checkpoint.table(), contents.tables);
}

bool IsComplete(const durable::CheckpointManifest& checkpoint,
                const job::Job& job) {
  if (!checkpoint.final()) return false;
  if (job.end().has_steps() && checkpoint.global_step() >= job.end().steps()) {
    return true;
  }
  // How many steps an epoch has is not known here: it ended as it would now.
  return MessageDifferencer::Equals(checkpoint.job().end(), job.end()) &&
         checkpoint.job().train().batch_size() == job.train().batch_size();
}

}  // namespace parasol

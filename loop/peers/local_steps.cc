#include "loop/peers/local_steps.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cluster/job/defaults.h"
#include "cluster/job/validate_optimizer.h"
#include "google/protobuf/text_format.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

constexpr char kPath[] = "parameter_server.local_steps.";
// Of a program's custom layer: the optimizer of its variables' local steps.
constexpr char kOptimizerParameter[] = "local_steps.optimizer";

absl::Status CheckProgramsHave(const job::LocalSteps& local) {
  if (local.has_inner() || local.has_batch_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        local.has_inner() ? "inner" : "batch_size",
        ": the program's optimizers and batches are those of the local steps; "
        "leave it out"));
  }
  if (local.fragments() > 1 || local.overlap_steps() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        local.fragments() > 1 ? "fragments" : "overlap_steps",
        ": a program exchanges all variables at once, between two iterations; "
        "leave it out"));
  }
  const job::Optimizer& outer = local.outer();
  if (outer.has_lamb() || outer.has_reduce_on_plateau()) {
    return absl::InvalidArgumentError(
        outer.has_lamb()
            ? "outer.lamb: needs whole variables, of which a ps has parts; "
              "choose sgd"
            : "outer.reduce_on_plateau: a program has no evaluations; leave it "
              "out");
  }
  return absl::OkStatus();
}

// Returns the first fault of a job with these local steps.
absl::Status FirstFault(const job::Optimizer& optimizer,
                        const job::LocalSteps& local) {
  job::Job job;
  *job.mutable_optimizer() = optimizer;
  *job.mutable_parameter_server()->mutable_local_steps() = local;
  FillDefaults(job);
  const absl::Status fault = ValidateLocalSteps(job, /*graph=*/nullptr).first();
  return absl::Status(fault.code(), absl::StripPrefix(fault.message(), kPath));
}

}  // namespace

absl::StatusOr<job::LocalSteps> ParseLocalSteps(absl::string_view text) {
  job::LocalSteps local;
  if (!google::protobuf::TextFormat::ParseFromString(std::string(text),
                                                     &local)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", text, "` is none; write it as in a job file: ",
        "steps: 100 outer { sgd { learning_rate: 0.7 momentum: 0.9 } }"));
  }
  RETURN_IF_ERROR(CheckProgramsHave(local));
  job::Optimizer any;
  any.mutable_sgd();
  RETURN_IF_ERROR(FirstFault(any, local));
  return local;
}

absl::Status CheckMakesLocalSteps(const job::Optimizer& optimizer,
                                  const job::LocalSteps& local) {
  return FirstFault(optimizer, local);
}

void UseLocalSteps(const job::LocalSteps& local, job::Job& job) {
  job::LocalSteps& steps =
      *job.mutable_parameter_server()->mutable_local_steps();
  steps = local;
  steps.mutable_inner()->Swap(job.mutable_optimizer());
  job.mutable_optimizer()->Swap(steps.mutable_outer());
  steps.clear_outer();
  for (job::Layer& layer : *job.mutable_model()->mutable_layer()) {
    if (!layer.has_optimizer()) continue;
    job::CustomParameter& parameter = *layer.mutable_custom()->add_parameter();
    parameter.set_name(kOptimizerParameter);
    parameter.set_value(layer.optimizer().ShortDebugString());
    layer.clear_optimizer();
  }
}

absl::Status CheckGoesOnWith(const job::LocalSteps* local,
                             const std::string& checkpoint_directory) {
  const CheckpointStore checkpoints(checkpoint_directory);
  const absl::StatusOr<std::optional<int64_t>> newest =
      checkpoints.NewestComplete();
  if (!newest.ok() || !newest->has_value()) return absl::OkStatus();
  const absl::StatusOr<durable::CheckpointManifest> manifest =
      checkpoints.ReadManifest(**newest);
  if (!manifest.ok()) return absl::OkStatus();
  const int was = manifest->job().parameter_server().local_steps().steps();
  const int is = local == nullptr ? 0 : local->steps();
  if (was == is) return absl::OkStatus();
  const auto counted = [](int steps) {
    return steps == 0 ? std::string("iterations")
                      : absl::StrCat("exchanges of ", steps, " iterations");
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "--local_steps: ", checkpoints.PathOf(**newest), " counts ", counted(was),
      ", and this program ", counted(is),
      "; go on with its local steps, or choose another --checkpoint_dir"));
}

}  // namespace parasol

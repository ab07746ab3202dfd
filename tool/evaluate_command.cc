#include "tool/evaluate_command.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "tool/best_flag.h"
#include "tool/json_flag.h"
#include "tool/loaded_model.h"

namespace parasol {
namespace {

constexpr char kEvaluateUsage[] =
    "Measures the loss and the job's metrics of a checkpoint over the job's "
    "eval data set, as the evaluator of a cluster does.\n"
    "\n"
    "  parasol evaluate CKPT --data_dir=DIR\n"
    "\n"
    "CKPT is a checkpoint's directory, or one with many checkpoints, of which "
    "the newest is meant, or with --best (or as DIR/BEST) the one with the "
    "best evaluation.\n"
    "\n"
    "  parasol evaluate /ckpt/mnist --data_dir=/data/mnist --best\n"
    "  parasol evaluate /ckpt/ads --data_dir=/data "
    "--set=eval.csv.file[0]=new.csv "
    "--json\n"
    "\n"
    "Exit code: 0 done; 1 the checkpoint is damaged; 2 bad flags, data or job; "
    "138 try again.";

absl::Status RunEvaluate(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CKPT"));
  const absl::Time start = Clock::Real().Now();
  ASSIGN_OR_RETURN(const LoadedModel loaded,
                   LoadModelByFlags(CheckpointByFlag(arguments[0])));
  ASSIGN_OR_RETURN(const EvaluatedModel::Result result,
                   loaded.model->Run([] { return false; }));
  const Evaluation evaluation = {.global_step = loaded.manifest.global_step(),
                                 .metrics = result.metrics,
                                 .loss = result.loss,
                                 .examples = result.examples,
                                 .took = Clock::Real().Now() - start,
                                 .checkpoint = loaded.path,
                                 .final = loaded.manifest.final()};
  printf("%s\n", (absl::GetFlag(FLAGS_json) ? ToJsonLine(evaluation)
                                            : Describe(evaluation))
                     .c_str());
  return absl::OkStatus();
}

}  // namespace

Command EvaluateCommand() {
  return {.name = "evaluate",
          .summary = "measures a checkpoint on the job's eval data",
          .usage = kEvaluateUsage,
          .flags = {"best", "data_dir", "data_cache_dir", "device", "threads",
                    "table_memory", "table_dir", "set", "json"},
          .run = [](const std::vector<std::string>& arguments) {
            return ExitWith(RunEvaluate(arguments));
          }};
}

}  // namespace parasol

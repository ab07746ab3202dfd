#ifndef PARASOL_CLUSTER_CHECKPOINT_EVALUATION_LOG_H_
#define PARASOL_CLUSTER_CHECKPOINT_EVALUATION_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ml/metric/metric_results.h"
#include "storage/durable_file.h"

namespace parasol {

// Result of evaluating one checkpoint on the job's eval data set.
struct Evaluation {
  int64_t global_step = 0;
  MetricResults metrics = {};
  double loss = 0;  // mean per example, L2 terms included
  int64_t examples = 0;
  absl::Duration took = {};
  std::string checkpoint = "";  // the checkpoint's directory
  // True if this is the job's last checkpoint.
  bool final = false;
  // The run that the checkpoint is of. May be empty.
  std::string run_id = "";
  // The owner that has written the checkpoint (CheckpointManifest); 0: not
  // known.
  int64_t chief_epoch = 0;
};

// Returns the value of "loss" or of a metric by its name; nullopt if the
// evaluation lacks it.
std::optional<double> ValueOf(const Evaluation& evaluation,
                              const std::string& metric);

// Removes the evaluations of later steps than `newest_step` from `evaluations`,
// which are in ascending order of their steps.
void DropLaterThan(int64_t newest_step, std::vector<Evaluation>& evaluations);

// Returns one line without its newline:
//   {"global_step":1200,"accuracy":0.97,"loss":0.1,"examples":10000,
//    "seconds":0.4,"checkpoint":"/ckpt/ckpt-000000001200","final":false,
//    "run_id":"9f0c","chief_epoch":7}
// The job's metrics, each by its name, stand in the place of "accuracy". A
// number that is not finite is null. "run_id" is left out if it is empty, and
// "chief_epoch" if it is 0.
std::string ToJsonLine(const Evaluation& evaluation);

// Returns a text like "step 1200: accuracy 0.9712, loss 0.0934, 10000 examples
// in 0.41 s".
std::string Describe(const Evaluation& evaluation);

// Appends the evaluation's line to `<checkpoint_directory>/evaluations.jsonl`,
// durably. Readers see the whole line or nothing of it. A process that owns the
// directory says by `may_write` that it still does, as AppendLineDurably() asks
// it.
absl::Status AppendEvaluation(const std::string& checkpoint_directory,
                              const Evaluation& evaluation,
                              MayWrite may_write = MayWriteAlways);

// Returns true: all evaluations of a run count.
inline bool EveryEvaluation(const Evaluation& /*evaluation*/) { return true; }

// Returns the evaluations of the run in that file for which `counts` is true
// (RunHistory::Has()), in ascending order of their steps; of two of the same
// step the later one. Lines that are none, or of another run, are passed over,
// and so is one that is being written. Without the file there are none.
//   ResourceExhausted  the file has more than 64 MiB.
//   any other          as for ReadFile().
absl::StatusOr<std::vector<Evaluation>> ReadEvaluations(
    const std::string& checkpoint_directory, const std::string& run_id,
    absl::FunctionRef<bool(const Evaluation&)> counts = EveryEvaluation);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_EVALUATION_LOG_H_

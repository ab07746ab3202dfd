#ifndef PARASOL_CLUSTER_CHECKPOINT_EVALUATION_LOG_H_
#define PARASOL_CLUSTER_CHECKPOINT_EVALUATION_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ml/metric/metric_results.h"

namespace parasol {

// Result of evaluating one checkpoint on the job's eval data set.
struct Evaluation {
  int64_t global_step = 0;
  MetricResults metrics;
  double loss = 0;  // mean per example, L2 terms included
  int64_t examples = 0;
  absl::Duration took;
  std::string checkpoint;  // the checkpoint's directory
  // True if this is the job's last checkpoint.
  bool final = false;
};

// Returns one line without its newline:
//   {"global_step":1200,"accuracy":0.97,"loss":0.1,"examples":10000,
//    "seconds":0.4,"checkpoint":"/ckpt/ckpt-000000001200","final":false}
// The job's metrics, each by its name, stand in the place of "accuracy". A
// number that is not finite is null.
std::string ToJsonLine(const Evaluation& evaluation);

// Returns a text like "step 1200: accuracy 0.9712, loss 0.0934, 10000 examples
// in 0.41 s".
std::string Describe(const Evaluation& evaluation);

// Appends the evaluation's line to `<checkpoint_directory>/evaluations.jsonl`,
// durably. Readers see the whole line or nothing of it.
absl::Status AppendEvaluation(const std::string& checkpoint_directory,
                              const Evaluation& evaluation);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_EVALUATION_LOG_H_

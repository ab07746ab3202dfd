#ifndef PARASOL_DEPLOY_LOCAL_PROGRESS_H_
#define PARASOL_DEPLOY_LOCAL_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "deploy/local/evaluation_line.h"
#include "proto/chief.pb.h"

namespace parasol {

// Measures the steps per second from the first to the last observation of the
// training, standstills included.
class MeanStepRate {
 public:
  void Observe(const wire::JobStatus& status, absl::Time now);
  // Returns the steps per second; 0 before the second observation.
  double steps_per_second() const;
  // Returns the time from the first to the last observation.
  absl::Duration observed() const;

 private:
  struct Look {
    absl::Time time;
    int64_t global_step = 0;
  };
  std::optional<Look> first_;
  Look last_;
};

// Returns the examples per second of the last line of training.jsonl, of which
// `jsonl` is the end; nullopt if there is none.
std::optional<double> LastTrainingRate(absl::string_view jsonl);

// Returns a line that says where the job goes on, or that there is nothing to
// do; empty for a new run.
std::string StartLine(const wire::JobStatus& status);

// Returns the state of a job as one line for people, e.g.
//   step 1,200/4,000 (30 %)  8 s left  accuracy 96.20 % at step 1,000
//   loss 0.2314  12,345 examples/s
// Shows the first one of the job's metrics, with the step of the checkpoint
// that it was measured on. While the job waits for tasks, or a checkpoint can't
// be written, the line says so, and for how long, instead of the time that is
// left. `status` is nullptr as long as the chief
// has not answered.
std::string ProgressLine(const wire::JobStatus* status,
                         const std::optional<EvaluationLine>& evaluation,
                         std::optional<absl::Duration> left);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_PROGRESS_H_

#ifndef PARASOL_COORDINATOR_JOB_ACCOUNT_H_
#define PARASOL_COORDINATOR_JOB_ACCOUNT_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "coordinator/coordinator_options.h"
#include "coordinator/job_view.h"
#include "coordinator/task_reports.h"
#include "coordinator/watch/worker_paces.h"
#include "coordinator/worker_reports.h"
#include "ml/optimizer/learning_rate.h"
#include "proto/chief.pb.h"

namespace parasol {

// How a job goes: what its workers report, and what it waits for, as JobStatus
// says it. Pure.
class JobAccount {
 public:
  // `options` must outlive this object.
  explicit JobAccount(const CoordinatorOptions& options);

  // Takes a task that registers.
  void Begin(const wire::RegisterRequest& task);
  // Takes what a task reports.
  void Keep(const wire::HeartbeatRequest& task, absl::Time now);
  // Forgets the worker with this index, which is gone.
  void Forget(int worker);
  // Looks at what the job waits for now, who is slow, and which points of the
  // curves are reached.
  void Look(const JobView& job, absl::Time now);
  void Reach(const StepGrants& grants, absl::Time now);
  // Keeps a line about what is lost, for people: the first 16.
  void Warn(absl::string_view line);

  // Returns the answer to GetStatus, without the checkpoint's path.
  wire::JobStatus Status(const JobView& job, absl::Time now) const;

 private:
  // Add parts of the status.
  void AddRates(const JobView& job, wire::JobStatus& status) const;
  void AddLosses(const JobView& job, wire::JobStatus& status) const;
  void AddTasks(const JobView& job, wire::JobStatus& status) const;
  void AddWaits(const JobView& job, wire::JobStatus& status) const;

  const CoordinatorOptions& options_;
  // The rate by the job alone; nullopt if it has no optimizer.
  const std::optional<LearningRate> rate_;
  std::vector<std::string> warnings_;
  WorkerReports reports_;
  TaskReports tasks_;
  WorkerPaces paces_;
  // The thing that is waited for, and since when; empty if nothing is.
  std::string waits_for_;
  absl::Time waits_since_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_JOB_ACCOUNT_H_

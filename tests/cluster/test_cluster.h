#ifndef PARASOL_TESTS_CLUSTER_TEST_CLUSTER_H_
#define PARASOL_TESTS_CLUSTER_TEST_CLUSTER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "chief/chief_task.h"
#include "cluster/client/chief_client.h"
#include "cluster/collective/collective.h"
#include "cluster/collective/testing/memory_network.h"
#include "cluster/trust/trust.h"
#include "evaluator/evaluator_task.h"
#include "proto/job.pb.h"
#include "ps/ps_task.h"
#include "worker/worker_task.h"

namespace parasol {

// Returns the directory of a data set of four classes that a small model tells
// apart: 8 × 8 pixels, a bright quadrant in noise. The IDX files are written
// once per test process.
std::string QuadrantsDirectory();

// Returns a job that learns that data set: 64-32-4, with its defaults filled
// in.
job::Job QuadrantsJob(int64_t steps);

// A whole cluster inside the test: real servers on loopback ports chosen by the
// system, real clients, real time. Tasks are started and stopped one by one.
// Without ps the job is trained under multi_worker_mirrored, with ps as the job
// says: by them or under hybrid.
class TestCluster {
 public:
  TestCluster(job::Job job, int num_ps, int num_workers,
              std::string checkpoint_directory);

  absl::Status StartChief();
  absl::Status StartPs(int index);
  absl::Status StartWorker(int index);
  absl::Status StartEvaluator();
  // Starts all tasks.
  absl::Status Start();

  // Sets the job of chiefs that are started from now on.
  void SetJob(job::Job job) { job_ = std::move(job); }

  // Sets the data directory of chiefs, workers and evaluators that are started
  // from now on; QuadrantsDirectory() by default.
  void SetDataDirectory(std::string directory) {
    data_directory_ = std::move(directory);
  }

  // Sets the clock of the workers of this index that are started from now on;
  // the clock must outlive them.
  void SetWorkerClock(int index, Clock& clock) {
    worker_clocks_[index] = &clock;
  }
  // Sets the clock of ps of this index that are started from now on.
  void SetPsClock(int index, Clock& clock) { ps_clocks_[index] = &clock; }

  // Gives tasks that are started from now on, and Status(), keys by a token.
  void SetToken(const JobToken& token) { token_ = token; }

  // Sets the limits of chiefs that are started from now on.
  void SetPaceLimits(const PaceLimits& limits, absl::Duration absence_named) {
    pace_ = limits;
    absence_named_ = absence_named;
  }

  // Stops a task in good order, forgets it, and returns its result.
  absl::Status StopPs(int index);
  absl::Status StopWorker(int index);
  absl::Status StopChief();

  // Blocks until the task has ended by itself, and returns its result.
  absl::Status WaitForChief() { return chief_->Wait(); }
  absl::Status WaitForPs(int index) { return ps_.at(index)->Wait(); }
  absl::Status WaitForWorker(int index) { return workers_.at(index)->Wait(); }
  absl::Status WaitForEvaluator() { return evaluator_->Wait(); }

  absl::StatusOr<wire::JobStatus> Status();
  // Block until the job has reached `step` or `phase`, or a status as it is
  // wanted.
  //   DeadlineExceeded  not reached within a minute.
  absl::Status AwaitStep(int64_t step);
  absl::Status AwaitPhase(wire::JobPhase phase);
  absl::Status AwaitStatus(
      const std::string& what,
      const std::function<bool(const wire::JobStatus&)>& reached);

  // Returns where the task listens: "127.0.0.1:2222".
  std::string Address(const std::string& role, int index) const;

  // Returns the metrics that all tasks of this cluster share.
  MetricsRegistry& metrics() { return metrics_; }

 private:
  // Returns the keys of a task, null without a token.
  std::shared_ptr<const Trust> TrustOf(PeerRole role, int index) const;
  wire::Task NewTask(const std::string& role, int index);

  job::Job job_;
  const int num_ps_;
  const int num_workers_;
  const std::string checkpoint_directory_;
  std::optional<JobToken> token_;
  std::map<std::string, int> ports_;
  uint64_t next_incarnation_ = 1;
  MetricsRegistry metrics_;
  // How workers without ps reach each other.
  MemoryNetwork network_;
  std::map<int, std::unique_ptr<CollectiveEndpoint>> endpoints_;
  std::map<int, Clock*> worker_clocks_;
  std::map<int, Clock*> ps_clocks_;
  PaceLimits pace_;
  absl::Duration absence_named_ = absl::Seconds(10);
  std::string data_directory_ = QuadrantsDirectory();

  std::unique_ptr<ChiefTask> chief_;
  std::map<int, std::unique_ptr<PsTask>> ps_;
  std::map<int, std::unique_ptr<WorkerTask>> workers_;
  std::unique_ptr<EvaluatorTask> evaluator_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_CLUSTER_TEST_CLUSTER_H_

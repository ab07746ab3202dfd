#ifndef PARASOL_TESTS_CLUSTER_STRATEGY_RUNS_H_
#define PARASOL_TESTS_CLUSTER_STRATEGY_RUNS_H_

#include <string>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "tests/cluster/cluster_runs.h"

namespace parasol {

// Returns a job with convolution, batch normalization (whose moving means are
// averaged, not trained), dropout, l2 and Adam. Its epochs end with smaller
// batches.
job::Job ImageJob();

// Returns the devices of `replicas` replicas as a strategy names them.
std::string DevicesOf(int replicas);

// Gives each worker `devices` logical devices of the processor.
void ListDevices(int devices, job::MultiWorkerMirrored& strategy);

// Trains one job under several strategies. Each run has a checkpoint directory
// of its own, or goes on with what is there.
class StrategyRunsTest : public ClusterRunsTest {
 protected:
  // Trains in one process under the strategy of the text; returns how it ended.
  static absl::Status TryAlone(job::Job job, const std::string& strategy,
                               const std::string& data_dir,
                               const std::string& run);
  static void TrainAlone(const job::Job& job, const std::string& strategy,
                         const std::string& data_dir, const std::string& run);
  // Trains with 2 ps and 2 workers, in step.
  static void TrainInCluster(job::Job job, int replicas,
                             const std::string& data_dir,
                             const std::string& run);
  // Trains with as many workers as replicas, which are there before the ps: no
  // replica has two of them. In step.
  static void TrainWithPs(job::Job job, int num_ps, int workers,
                          const std::string& data_dir, const std::string& run);
  // Trains without ps; a worker has as many replicas as the job lists devices.
  static void TrainByWorkers(job::Job job, int workers,
                             const std::string& data_dir,
                             const std::string& run);
  // Trains under hybrid, with 2 ps and as many replicas on each worker as the
  // job lists devices for that.
  static void TrainByBoth(job::Job job, int workers,
                          const std::string& data_dir, const std::string& run);

  static Trained TrainedBy(const std::string& run);
  // Returns what the run began with, whose first checkpoint must be there.
  static Trained InitialOf(const std::string& run);
};

}  // namespace parasol

#endif  // PARASOL_TESTS_CLUSTER_STRATEGY_RUNS_H_

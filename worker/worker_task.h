#ifndef PARASOL_WORKER_WORKER_TASK_H_
#define PARASOL_WORKER_WORKER_TASK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/chief.pb.h"

namespace parasol {

struct WorkerTaskOptions {
  // Role "worker", its index and a fresh incarnation.
  wire::Task task;
  std::string chief_address;
  // Where the health service listens; empty: nowhere (the chief that runs
  // beside worker 0 has its address).
  std::string listen_address;
  // Told to the chief, for people to find.
  std::string metrics_address;
  std::string data_dir;
  // "auto", "cpu", "cuda:0".
  std::string device = "auto";
  // Of a CPU, for computing.
  int threads = 1;
  // This worker reads examples input_shard, input_shard + input_shards, …
  int input_shard = 0;
  int input_shards = 1;
  absl::Duration chief_timeout = absl::Minutes(5);
  // For the ps to be there and loaded, and for one that went away to return.
  absl::Duration ps_timeout = absl::Minutes(5);
  // For the last gradients to be acknowledged after Stop().
  absl::Duration drain_timeout = absl::Seconds(10);
};

// A worker of a cluster, from its registration to the end of the job, on
// threads of its own. What the binary's main and in-process tests start.
//
// Shutdown: Stop() or the job's end, then Wait(), then destroy.
class WorkerTask {
 public:
  //   InvalidArgument  the address can't be listened on.
  static absl::StatusOr<std::unique_ptr<WorkerTask>> Start(
      const WorkerTaskOptions& options, Clock& clock, MetricsRegistry& metrics);
  virtual ~WorkerTask() = default;

  // Blocks until the worker has ended.
  //   OK                  the job is complete.
  //   Cancelled           stopped, and its gradients were acknowledged.
  //   Unavailable, DeadlineExceeded  a peer did not come (back): names it.
  //   any other           the job has failed, here or elsewhere.
  virtual absl::Status Wait() = 0;

  // Ends after the step that is being computed. May be called twice, from any
  // thread.
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_WORKER_TASK_H_

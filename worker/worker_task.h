#ifndef PARASOL_WORKER_WORKER_TASK_H_
#define PARASOL_WORKER_WORKER_TASK_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/trust/trust.h"
#include "proto/chief.pb.h"
#include "worker/worker_parameters.h"

namespace parasol {

class TrainingHooks;

struct WorkerTaskOptions {
  // The task's role "worker", its index and a fresh incarnation.
  wire::Task task;
  std::string chief_address;
  // Address of the health service. Empty: there is none, as for worker 0 with a
  // chief beside it, which uses the address.
  std::string listen_address;
  // Address of the metrics, reported to the chief so that people can find it.
  std::string metrics_address;
  std::string data_dir;
  // Directory in which to look for the end of the job if no chief answers;
  // empty: the one that the chief names.
  std::string checkpoint_directory;
  // Name of the device: "auto", "cpu", "cuda:0".
  std::string device = "auto";
  // Number of CPU threads that compute.
  int threads = 1;
  // Number of workers of the cluster. The files are split among them if
  // auto_shard is FILE.
  int input_shards = 1;
  // The keys of this task; null: it has none, and neither have its peers.
  std::shared_ptr<const Trust> trust = nullptr;
  // Told of the training; null: nothing is. Must outlive the task.
  TrainingHooks* hooks = nullptr;
  // Set for a worker that has variables with others.
  std::optional<GroupPlace> group;
  absl::Duration chief_timeout = absl::Minutes(5);
  // Longest wait for the ps to be up and loaded, and for a lost one to return.
  absl::Duration ps_timeout = absl::Minutes(5);
  // Longest wait after Stop() for the last gradients to be acknowledged.
  absl::Duration drain_timeout = absl::Seconds(10);
};

// A worker of a cluster, from its registration to the end of the job, on
// threads of its own. Both the binary's main() and in-process tests start it.
//
// Shutdown: Stop() or the job's end, then Wait(), then destruction.
class WorkerTask {
 public:
  // Starts the worker.
  //   InvalidArgument  the task can't listen on the address.
  static absl::StatusOr<std::unique_ptr<WorkerTask>> Start(
      const WorkerTaskOptions& options, Clock& clock, MetricsRegistry& metrics);
  virtual ~WorkerTask() = default;

  // Returns the port of GroupPlace::state_listen_address; 0 if there is
  // none.
  virtual int state_port() const = 0;

  // Blocks until the worker has ended.
  //   OK                  the job is complete.
  //   Cancelled           stopped, and its gradients were acknowledged.
  //   Unavailable, DeadlineExceeded  a peer did not come, or did not return;
  //                       the message names it.
  //   any other           the job has failed, here or elsewhere.
  virtual absl::Status Wait() = 0;

  // Ends the worker after the step that is being computed. May be called twice,
  // from any thread.
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_WORKER_TASK_H_

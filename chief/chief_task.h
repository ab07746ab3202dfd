#ifndef PARASOL_CHIEF_CHIEF_TASK_H_
#define PARASOL_CHIEF_CHIEF_TASK_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "chief/chief_server.h"
#include "chief/chief_service.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/rpc/server.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"
#include "storage/directory_lock.h"

namespace parasol {

struct ChiefTaskOptions {
  // Loads the job; the errors are those of cluster/job/job_file.h.
  absl::Status UseJobFile(const std::string& path,
                          const std::vector<std::string>& overrides);
  // Takes the addresses below from the cluster spec.
  //   InvalidArgument  there is no cluster, or its chief is another task.
  absl::Status UseCluster(const TaskConfig& config);

  // The job, with its defaults filled in (cluster/job), and the variables of
  // its model (Graph::variables).
  job::Job job;
  std::vector<VariableSpec> variables;
  // Addresses in the cluster spec, by task index; at least one of each.
  std::map<int, std::string> ps;
  std::map<int, std::string> workers;
  // Address to listen on; the system chooses the port if it is 0.
  std::string listen_address;
  // Addresses that the status shows to operators.
  std::string address;
  std::string metrics_address;
  // Directory of the checkpoints; empty: the job's checkpoint.directory.
  std::string checkpoint_directory;
  // Time for which a missing ps, or the absence of all workers, is borne.
  absl::Duration ps_timeout = absl::Minutes(5);
  absl::Duration worker_timeout = absl::Minutes(5);
  // Time for which the first and the last checkpoint are tried again.
  absl::Duration checkpoint_timeout = absl::Minutes(10);
  // Time that tasks have to leave when the job has ended.
  absl::Duration finish_timeout = absl::Seconds(30);
  // Time that a ps has to read or write its share of a checkpoint.
  absl::Duration shard_call_deadline = absl::Minutes(30);
  absl::Duration lease = absl::Seconds(10);
  absl::Duration heartbeat_interval = absl::Seconds(1);
};

// The chief of a cluster, on threads of its own. Started by the binary's main
// and by in-process tests.
//
// Shutdown: Stop() or the job's end, then Wait(), then destroy the task.
class ChiefTask {
 public:
  // Finds the checkpoint to resume from, if any, and listens; does not wait for
  // other tasks. `clock` and `metrics` must outlive the task.
  //   InvalidArgument, PermissionDenied  the job, the checkpoint directory or
  //                    the address is of no use, or the checkpoint in the
  //                    directory is another model's; the message says which.
  //   DataLoss         no checkpoint in the directory is intact.
  static absl::StatusOr<std::unique_ptr<ChiefTask>> Start(
      const ChiefTaskOptions& options, Clock& clock, MetricsRegistry& metrics);
  ~ChiefTask();

  int port() const { return rpc_server_->port(); }

  // Blocks until the chief has ended.
  //   OK                  the job is complete and the tasks have left.
  //   FailedPrecondition  the job failed; the message names the task and its
  //                       error.
  //   InvalidArgument     the job failed: its first or last checkpoint could
  //                       not be written to the directory.
  //   Unavailable         a ps, or all workers, stayed away too long, or a ps
  //                       did not write its part of such a checkpoint.
  //   Cancelled           stopped.
  absl::Status Wait();

  // Writes a last checkpoint and ends; the tasks wait for the next chief. May
  // be called twice, from any thread.
  void Stop() { server_.RequestStop(); }

 private:
  ChiefTask(ChiefServer::Options options,
            std::unique_ptr<OrderExecutor> executor, Clock& clock,
            MetricsRegistry& metrics)
      : server_(std::move(options), std::move(executor), clock, metrics),
        service_(server_) {}

  // Keeps the launcher from removing the checkpoints as those of an old run.
  std::optional<DirectoryLock> directory_in_use_;
  ChiefServer server_;
  ChiefService service_;
  std::unique_ptr<RpcServer> rpc_server_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_CHIEF_TASK_H_

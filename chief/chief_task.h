#ifndef PARASOL_CHIEF_CHIEF_TASK_H_
#define PARASOL_CHIEF_CHIEF_TASK_H_

#include <functional>
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
#include "chief/chief_gate.h"
#include "chief/chief_server.h"
#include "chief/chief_service.h"
#include "chief/data_follower.h"
#include "chief/evaluation_watch.h"
#include "chief/kubeflow/https_post.h"
#include "chief/kubeflow/progress_poster.h"
#include "chief/progress_writer.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/job/job_file.h"
#include "cluster/rights/rights.h"
#include "cluster/rpc/server.h"
#include "cluster/trust/trust.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"
#include "storage/directory_ownership.h"
#include "storage/shard_writer.h"

namespace parasol {

struct ChiefTaskOptions {
  // Takes the job.
  void UseJob(LoadedJob loaded);
  // Takes the addresses below from the cluster spec, and gives the job, which
  // must be there, the strategy by which this cluster trains it.
  //   InvalidArgument  there is no cluster, or its chief is another task, or
  //                    the strategy does not fit the cluster.
  absl::Status UseCluster(const TaskConfig& config);
  // Adds worker 0's place of a ps, for the variables that the workers of a job
  // under hybrid have. Needs the job, `ps`, `workers` and `state_address`.
  //   InvalidArgument  there is no worker 0, or the model has no variables.
  absl::Status UseWorkersVariables();

  // The job, with its defaults filled in (cluster/job), and the variables of
  // its model (Graph::variables).
  job::Job job;
  std::vector<VariableSpec> variables;
  // Address at which worker 0 takes orders for the variables, under
  // multi-worker mirrored and hybrid. Empty: worker 0's own (hybrid only).
  std::string state_address;
  // Addresses in the cluster spec, by task index; at least one of each. Under
  // multi-worker mirrored ps/0 is at `state_address`.
  std::map<int, std::string> ps;
  // The one of `ps` that is worker 0, if any is.
  std::optional<int> state_place;
  std::map<int, std::string> workers;
  // The evaluator's; empty if the cluster spec has none.
  std::string evaluator;
  // Address to listen on; the system chooses the port if it is 0.
  std::string listen_address;
  // Addresses that the status shows to operators.
  std::string address;
  std::string metrics_address;
  // Server that the progress is posted to; nullopt: none.
  std::optional<HttpsServer> trainer_server;
  // Page that shows the job; may be null. It must outlive the task.
  JobPage* page = nullptr;
  // Function that writes what a new run begins with; null: TakeRunOptions.
  std::function<absl::Status(ShardWriter& writer)> first_values = nullptr;
  // True if the job ends when all workers have left in good order.
  bool ends_with_workers = false;
  // CoordinatorOptions::has_elastic_workers.
  bool has_elastic_workers = false;
  // Directory of the checkpoints; empty: the job's checkpoint.directory.
  std::string checkpoint_directory;
  // Directory of the data, for a training set that grows.
  std::string data_dir;
  // Time for which a missing ps, or the absence of all workers, is borne.
  absl::Duration ps_timeout = absl::Minutes(5);
  absl::Duration worker_timeout = absl::Minutes(5);
  // Time for which the first and the last checkpoint are tried again, and a
  // directory that is full at the start.
  absl::Duration checkpoint_timeout = absl::Minutes(10);
  // Time that tasks have to leave when the job has ended.
  absl::Duration finish_timeout = absl::Seconds(30);
  // Time that a ps has to read or write its share of a checkpoint.
  absl::Duration shard_call_deadline = absl::Minutes(30);
  // The limits by which a worker is called slow, and absent.
  PaceLimits pace;
  absl::Duration absence_named = absl::Seconds(10);
  absl::Duration lease = absl::Seconds(10);
  absl::Duration heartbeat_interval = absl::Seconds(1);
  // Time in silence after which the checkpoint directory's owner counts as
  // dead, if that can't be known otherwise.
  std::optional<absl::Duration> directory_lease = std::nullopt;
  // The keys of this task; null: it has none, and neither have its peers.
  std::shared_ptr<const Trust> trust = nullptr;
  // Function that ends the waits of ChiefTask::Start(); it is polled.
  std::function<bool()> cancelled = [] { return false; };
};

// The chief of a cluster, on threads of its own. Started by the binary's main
// and by in-process tests.
//
// Shutdown: Stop() or the job's end, then Wait(), then destroy the task.
class ChiefTask {
 public:
  // Listens, takes the checkpoint directory, and finds the checkpoint to resume
  // from, if any; does not wait for other tasks. Tries again while the
  // directory can't be read, or waits until its owner is known to have ended,
  // and tells the tasks so meanwhile. `clock` and `metrics` must outlive the
  // task.
  //   InvalidArgument, PermissionDenied  the job, the checkpoint directory or
  //                    the address is of no use, or the checkpoint in the
  //                    directory is another model's, or the directory belongs
  //                    to another chief, or was full for
  //                    `checkpoint_timeout`; the message says which.
  //   DataLoss         no checkpoint in the directory is intact.
  //   Unavailable      the directory could not be read for five minutes.
  //   Cancelled        `options.cancelled` returned true.
  static absl::StatusOr<std::unique_ptr<ChiefTask>> Start(
      const ChiefTaskOptions& options, Clock& clock, MetricsRegistry& metrics);
  ~ChiefTask();

  int port() const { return rpc_server_->port(); }

  // Blocks until the chief has ended.
  //   OK                  the job is complete and the tasks have left.
  //   FailedPrecondition  the job failed; the message names the task and its
  //                       error. Or the checkpoint directory has another owner.
  //   InvalidArgument     the job failed: its first or last checkpoint could
  //                       not be written to the directory.
  //   Unavailable         a ps, or all workers, stayed away too long, or a ps
  //                       did not write its part of such a checkpoint.
  //   Cancelled           stopped.
  absl::Status Wait();

  // Writes a last checkpoint and ends; the tasks wait for the next chief. May
  // be called twice, from any thread.
  void Stop() { server_->RequestStop(); }

 private:
  ChiefTask(const ChiefTaskOptions& options, Clock& clock,
            MetricsRegistry& metrics)
      : options_(options),
        clock_(clock),
        metrics_(metrics),
        service_(gate_, RightsOf(options)) {}

  static Rights RightsOf(const ChiefTaskOptions& options);
  // Returns the coordinator's options, but for what a checkpoint says.
  absl::StatusOr<Coordinator::Options> CoordinatorOptions() const;
  std::unique_ptr<OrderExecutor> MakeExecutor(
      const Coordinator::Options& coordinator, CheckpointStore store);
  ProgressPoster::Options PosterOptions();
  // Prepares to follow the training set of a job that grows. Fills in
  // `coordinator.followed`.
  absl::Status PrepareToFollow(const std::string& directory,
                               Coordinator::Options& coordinator);
  // Finds the checkpoint to resume from, and starts the server.
  absl::Status Open();

  const ChiefTaskOptions options_;
  Clock& clock_;
  MetricsRegistry& metrics_;
  ChiefGate gate_;
  ChiefService service_;
  std::unique_ptr<ChiefServer> server_;
  // Destroyed before the server, whose status it writes down.
  std::unique_ptr<ProgressWriter> progress_;
  // Destroyed before the server, whose status it posts. Null: the job has no
  // trainer_server.
  std::unique_ptr<ProgressPoster> poster_;
  // Destroyed before the server and the poster, to which it reports. Null:
  // evaluations decide nothing in this job.
  std::unique_ptr<EvaluationWatch> evaluations_;
  // Destroyed before the server, which it tells. Null: the set does not grow.
  std::unique_ptr<DataFollower> follower_;
  // Destroyed before the server, which it may stop.
  std::unique_ptr<DirectoryOwnership> ownership_;
  std::unique_ptr<RpcServer> rpc_server_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_CHIEF_TASK_H_

#ifndef PARASOL_PS_PS_TASK_H_
#define PARASOL_PS_PS_TASK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/client/chief_session.h"
#include "cluster/client/standby_client.h"
#include "cluster/inspection/task_inspection.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/rights/rights.h"
#include "cluster/rpc/server.h"
#include "cluster/trust/trust.h"
#include "proto/chief.pb.h"
#include "ps/exchange/parameter_service.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"
#include "ps/standby/standby_host.h"
#include "ps/standby/standby_keeper.h"
#include "ps/step/non_finite.h"

namespace parasol {

struct PsTaskOptions {
  // Identity of the ps: role "ps", its index and a fresh incarnation.
  wire::Task task;
  // Address to listen on; the system chooses the port if it is 0. The chief
  // gives workers the address in its cluster spec.
  std::string listen_address;
  std::string chief_address;
  // Address that is given to the chief, which shows it to operators.
  std::string metrics_address;
  absl::Duration chief_timeout = absl::Minutes(5);
  // Longest wait of a ps that is stopped for a checkpoint that has its updates,
  // and for a chief that does not answer meanwhile.
  absl::Duration drain_timeout = absl::Seconds(40);
  absl::Duration drain_silence = absl::Seconds(10);
  // Time that requests in progress have when the task ends.
  absl::Duration request_grace = absl::Seconds(10);
  uint64_t memory_limit_bytes = UINT64_MAX;
  NonFinite non_finite = NonFinite::kReject;
  // Bytes that all workers' streams together may hold (BufferBudget).
  int64_t buffer_bytes = ParameterService::kDefaultBufferBytes;
  // Number of threads that carry out pushes and pulls.
  int polling_threads = ParameterService::kDefaultThreads;
  // Port for the TCP connections that carry the messages of workers' streams;
  // 0: the system chooses one, -1: messages travel in gRPC.
  int payload_port = 0;
  // Directory in which journals are; empty: the chief's checkpoint directory.
  std::string journal_directory;
  // Directory of the files of tables with a tier; empty: $TMPDIR, or /var/tmp.
  std::string tier_directory;
  // Set if the task acts for a lost ps, in the process of another one, whose
  // index `task` has as its host_index.
  struct Acting {
    // The standbys of that process; must outlive the task.
    StandbyHost* standbys = nullptr;
    // Number of the order.
    uint64_t order = 0;
    // "host:port" at which others reach the process, with any port.
    std::string address;
  };
  std::optional<Acting> acting;
  // Called with each answer of the chief, on any thread.
  std::function<void(const wire::HeartbeatResponse&)> on_answer =
      [](const wire::HeartbeatResponse&) {};
  // StandbyHost::Options.
  std::function<void()> on_lost_primary = [] {};
  // Called when the task has ended, last.
  std::function<void()> on_end = [] {};
  // The keys of this task; null: it has none, and neither have its peers.
  std::shared_ptr<const Trust> trust = nullptr;
  // The rights of those who call this ps.
  Rights rights;
};

// A ps of a cluster, from its registration to the end of the job, on threads of
// its own. Started by the binary's main and by in-process tests.
//
// Shutdown: Stop() or the job's end, then Wait(), then destroy the task.
class PsTask {
 public:
  // Starts to listen; does not wait for the chief. `clock` and `metrics` must
  // outlive the task.
  //   InvalidArgument  the address, or the payload port, can't be listened on.
  static absl::StatusOr<std::unique_ptr<PsTask>> Start(
      const PsTaskOptions& options, Clock& clock, MetricsRegistry& metrics);
  ~PsTask();

  int port() const { return rpc_server_->port(); }
  StandbyHost& standbys() { return standbys_; }

  // Sends a heartbeat, which is filled in, beside the session's own.
  //   Unavailable  the task has not registered yet.
  // and the chief's errors.
  absl::StatusOr<wire::HeartbeatResponse> Tell(wire::HeartbeatRequest request)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if nothing is lost when the task ends now: its shard takes
  // nothing behind a checkpoint that is complete.
  bool stays() const {
    return server_.updates() == ParameterServer::Updates::kStaying;
  }

  // Blocks until the ps has ended.
  //   OK                  the job is complete.
  //   Cancelled           stopped.
  //   FailedPrecondition  the job has failed, or another process has taken this
  //                       task's place.
  //   Unavailable         the chief did not answer for chief_timeout.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mu_);

  // Ends in good order: takes no more pushes of asynchronous training, waits
  // for a checkpoint that has those it took, answers the requests that were
  // read and tells the chief. Blocks for the first two. May be called twice,
  // from any thread. The destructor waits for no checkpoint.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  PsTask(const PsTaskOptions& options, std::unique_ptr<PayloadHost> lanes,
         Clock& clock, MetricsRegistry& metrics);

  // Runs on the task's thread.
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Serve() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::shared_ptr<ChiefSession>> Join();
  // Fills in a heartbeat.
  void Describe(wire::HeartbeatRequest& request);
  // ParameterServer::Options::take_shard.
  std::function<absl::StatusOr<StandbyShard>(const wire::LoadRequest& order)>
  ShardTaker();
  // Returns the request for the standby that the order names.
  wire::TakeStandbyRequest RequestFor(const wire::LoadRequest& order) const;
  // Fetches its state.
  absl::StatusOr<ShardState> TakeStandby(const wire::LoadRequest& order);
  absl::Status AwaitEnd(ChiefSession& session);
  void Drain();
  // Notes that the task is to end; returns its session, or null before there is
  // one.
  std::shared_ptr<ChiefSession> BeginStop() ABSL_LOCKS_EXCLUDED(mu_);
  void AwaitCheckpoint(ChiefSession& session);
  // Has the task end soon: a row of its shard is lost. Its successor has what
  // this one lacks, so there is no checkpoint to wait for.
  void Fail(const absl::Status& failure) ABSL_LOCKS_EXCLUDED(mu_);
  bool has_failed() const ABSL_LOCKS_EXCLUDED(mu_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(mu_);

  const PsTaskOptions options_;
  Clock& clock_;
  MetricsRegistry& metrics_registry_;
  PsMetrics metrics_;
  const std::shared_ptr<TaskInspection> inspection_;
  const std::shared_ptr<WorkHelpers> helpers_;
  std::atomic<int64_t> place_epoch_ = 0;
  // Members below have threads, which may call Fail(): mu_ outlives them.
  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<ChiefSession> session_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mu_);
  // Error with which the task ends; OK: there is none.
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  const std::unique_ptr<StandbyClient> standby_client_;
  StandbyKeeper standby_keeper_;
  ParameterServer server_;
  StandbyHost standbys_;
  const std::unique_ptr<PayloadHost>
      lanes_;  // null if there is no payload port
  ParameterService service_;
  std::unique_ptr<RpcServer> rpc_server_;
  std::jthread thread_;
};

}  // namespace parasol

#endif  // PARASOL_PS_PS_TASK_H_

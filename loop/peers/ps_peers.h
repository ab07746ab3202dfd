#ifndef PARASOL_LOOP_PEERS_PS_PEERS_H_
#define PARASOL_LOOP_PEERS_PS_PEERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/client/chief_session.h"
#include "cluster/inspection/task_inspection.h"
#include "cluster/rpc/server.h"
#include "cluster/trust/trust.h"
#include "loop/peers/local_peers.h"
#include "loop/peers/program_settings.h"
#include "loop/peers/recorded_gauges.h"
#include "parameters/client/parameter_client.h"
#include "proto/chief.pb.h"
#include "worker/placement_follower.h"
#include "worker/step/step_source.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// A worker of a cluster with ps that runs a program with a training loop of its
// own. It is to chief and ps what a worker of a job in asynchronous training
// is: ps hold the variables, and each iteration is a step that the chief grants
// it. One that is lost has its iterations granted to others, and goes on when
// it is started again.
//
// When the job is complete the store gets the values of the last checkpoint, as
// ps leave then.
//
// Used by one thread, but for Stop(). What shared() returns is thread-safe.
class PsPeers : public LocalPeers {
 public:
  struct Options {
    // The role "worker", its index, and a fresh incarnation.
    wire::Task task;
    int workers = 1;  // of the cluster
    std::string chief_address;
    // Address of the health service; empty: there is none.
    std::string listen_address = {};
    int replicas = 1;  // of this process
    ProgramSettings settings = {};
    std::shared_ptr<const Trust> trust = nullptr;
    // Longest wait for the chief, and for ps to be up and loaded.
    absl::Duration peer_timeout = absl::Minutes(5);
  };

  // `clock` must outlive this object, as must the store that Begin() is given.
  PsPeers(Options options, Clock& clock);
  ~PsPeers() override;

  int place() const override { return options_.task.index(); }
  int num_places() const override { return options_.workers; }
  // Waits until the chief has had ps load the variables, and pulls them.
  //   InvalidArgument  the chief runs another program: says what differs.
  //   any other        as for ChiefSession::Join() and AwaitPlacement().
  using Peers::Begin;
  absl::StatusOr<int64_t> Begin(ParameterStore& store,
                                const std::vector<std::string>& parts) override;
  TrainingParameters* shared() override {
    return is_over_ ? nullptr : parameters_.get();
  }
  const job::LocalSteps* local_steps() const override {
    return LocalStepsOf(options_.settings);
  }
  TrainingReporter* reporter() override { return &reporter_; }
  absl::StatusOr<std::optional<int64_t>> NextIteration(int64_t done) override;
  absl::StatusOr<bool> Commit(const Iteration& iteration,
                              ParameterStore& store) override;
  absl::StatusOr<bool> GoesOn() override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status End(const absl::Status& result) override;
  void Stop() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status Join(const job::Job& job);
  // Leaves a chief that leads another program, for which it would wait at its
  // end.
  void LeaveUnheard();
  // Makes the client and what follows the job; not if the job has ended.
  absl::Status Connect(ParameterStore& store);
  absl::Status PullAll(ParameterStore& store);
  // Gives the store the job's last values.
  void TakeLastValues();
  void OnLost(absl::Status why) ABSL_LOCKS_EXCLUDED(mu_);
  void OnComplete() ABSL_LOCKS_EXCLUDED(mu_);
  void Report(wire::HeartbeatRequest& request);
  // Tells the chief of what was done since the session's last heartbeat. The
  // session has stopped. Returns true if the job has ended.
  bool ReportTheRest();
  bool IsStopping() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the error that `status` is about: a lost session has made all below
  // it fail.
  absl::Status Why(const absl::Status& status) const ABSL_LOCKS_EXCLUDED(mu_);
  // Tells the chief of an error that starting this worker again would not mend.
  void ReportError(const absl::Status& failure);
  void Disconnect();

  const Options options_;
  Clock& clock_;
  MetricsRegistry own_metrics_;
  MetricsRegistry& registry_;
  WorkerMetrics metrics_;
  RecordedGauges recorded_;
  const std::shared_ptr<TaskInspection> inspection_;
  TrainingReporter reporter_;
  TrainingReport reported_;  // the reporting thread's
  ParameterStore* store_ = nullptr;
  int64_t begun_end_ = 0;  // end() in Begin()
  bool is_over_ = false;   // the job is complete
  // Run and layout that the worker has joined; used by Begin(), then by the
  // session's thread.
  std::string joined_run_;
  uint64_t joined_layout_ = 0;

  mutable absl::Mutex mu_;
  std::unique_ptr<ChiefStepSource> steps_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status lost_ ABSL_GUARDED_BY(mu_);

  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<ChiefSession> session_;  // its thread calls this object
  std::unique_ptr<ParameterClient> parameters_;
  std::unique_ptr<PlacementFollower> follower_;
};

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_PS_PEERS_H_

#ifndef PARASOL_CHIEF_CHIEF_SERVER_H_
#define PARASOL_CHIEF_CHIEF_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "chief/chief_metrics.h"
#include "chief/coordinator.h"
#include "chief/order_executor.h"
#include "chief/status_log.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "proto/chief.pb.h"

namespace parasol {

// A Coordinator with a lock, a clock, and two threads: one carries out the
// coordinator's orders, without the lock; the other lets time pass.
// Thread-safe.
//
// Shutdown: Wait(), or RequestStop() and Wait(), or EndWaits(); then destroy
// the server, when no rpc is in progress any more.
class ChiefServer {
 public:
  // Longest time that a ClaimSteps() waits, whatever it asks for.
  static constexpr absl::Duration kMaxClaimWait = absl::Seconds(10);

  struct Options {
    Coordinator::Options coordinator;
    absl::Duration heartbeat_interval = absl::Seconds(1);
    // Addresses that GetStatus shows as the chief's own; may be empty.
    std::string address;
    std::string metrics_address;
    // Looks for evaluations and calls Evaluated() with new ones: before old
    // checkpoints are removed.
    std::function<void()> look_at_evaluations = [] {};
  };

  // `clock` and `metrics` must outlive the server.
  ChiefServer(Options options, std::unique_ptr<OrderExecutor> executor,
              Clock& clock, MetricsRegistry& metrics);
  ~ChiefServer();

  // Starts the threads. Called once.
  void Start();

  // The rpcs of proto/chief.proto. Only ClaimSteps() blocks, for as long as the
  // request says, if there is no news.
  absl::StatusOr<wire::RegisterResponse> Register(
      const wire::RegisterRequest& request);
  absl::StatusOr<wire::HeartbeatResponse> Heartbeat(
      const wire::HeartbeatRequest& request);
  absl::StatusOr<wire::GetPlacementResponse> GetPlacement(
      const wire::GetPlacementRequest& request);
  absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest& request);
  absl::StatusOr<wire::ReportFailureResponse> ReportFailure(
      const wire::ReportFailureRequest& request);
  absl::StatusOr<wire::LeaveResponse> Leave(const wire::LeaveRequest& request);
  absl::StatusOr<wire::JobStatus> GetStatus(
      const wire::GetStatusRequest& request);

  // Takes the evaluations of the run: see Coordinator::Evaluated().
  void Evaluated(const std::vector<Evaluation>& evaluations)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks until the chief may end, and returns how: see Coordinator::Outcome.
  absl::Status Wait();

  // Makes calls that wait return, and later calls not wait.
  void EndWaits();

  // Writes a last checkpoint if there is something to keep, then lets Wait()
  // return. Cuts loads in progress short. May be called twice.
  void RequestStop();

  // Lets Wait() return `outcome` without a last checkpoint: the chief is not to
  // do anything more. Ends the calls in progress.
  void End(absl::Status outcome);

 private:
  // A ClaimSteps() that waits for news.
  class ClaimWait;

  // Answers a claim. If it has to wait for news, `wait` is begun.
  absl::StatusOr<wire::ClaimStepsResponse> TryClaim(
      const wire::ClaimStepsRequest& request, ClaimWait& wait);
  void RunOrders();
  void CarryOutOrders();
  void CarryOut(const Coordinator::LoadOrder& order);
  void CarryOut(const Coordinator::CheckpointOrder& order);
  void RunTime();
  void Tick(StatusLog& log);
  wire::JobStatus Status() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Notes that something has changed: there may be an order to carry out, or an
  // answer to a call that waits.
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Wakes the claims that wait if they may be answered with news.
  void WakeClaims() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const std::unique_ptr<OrderExecutor> executor_;
  Clock& clock_;
  ChiefMetrics metrics_;

  mutable absl::Mutex mu_;
  Coordinator coordinator_ ABSL_GUARDED_BY(mu_);
  // True if there may be an order to carry out.
  bool has_news_ ABSL_GUARDED_BY(mu_) = true;
  std::set<ClaimWait*> claim_waits_ ABSL_GUARDED_BY(mu_);
  // Coordinator::claim_news() when the claims that wait were woken last.
  int64_t claim_news_ ABSL_GUARDED_BY(mu_) = 0;
  bool waits_ended_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_requested_ ABSL_GUARDED_BY(mu_) = false;
  // True if a load order is being carried out.
  // The order that is being carried out.
  std::optional<Coordinator::Order> order_ ABSL_GUARDED_BY(mu_);
  bool shutting_down_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mu_);

  absl::Notification orders_ended_;
  std::thread orders_;
  std::thread time_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_CHIEF_SERVER_H_

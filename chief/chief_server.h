#ifndef PARASOL_CHIEF_CHIEF_SERVER_H_
#define PARASOL_CHIEF_CHIEF_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "chief/chief_metrics.h"
#include "chief/port_probe.h"
#include "chief/suspect_probes.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/inspection/task_inspection.h"
#include "cluster/progress/task_notes.h"
#include "coordinator/coordinator.h"
#include "coordinator/inspections.h"
#include "coordinator/order_executor.h"
#include "coordinator/page/job_page.h"
#include "coordinator/steps/waiting_claims.h"
#include "coordinator/watch/status_log.h"
#include "proto/chief.pb.h"

namespace parasol {

// A Coordinator with a lock, a clock, and four threads: one carries out the
// coordinator's orders, without the lock; one lets time pass; one answers the
// claims that wait; one looks whether ps are gone. Thread-safe.
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
    // Returns true if nobody listens at an address ("host:port"), for sure.
    // May take long.
    std::function<bool(const std::string& address)> is_nobody_at = IsNobodyAt;
    // Page that is shown the status, and told what happens; may be null. It
    // must outlive the server.
    JobPage* page = nullptr;
  };

  // `clock` and `metrics` must outlive the server.
  ChiefServer(Options options, std::unique_ptr<OrderExecutor> executor,
              Clock& clock, MetricsRegistry& metrics);
  ~ChiefServer();

  // Starts the threads. Called once.
  void Start();

  // The rpcs of proto/chief.proto. None blocks but for the lock.
  absl::StatusOr<wire::RegisterResponse> Register(
      const wire::RegisterRequest& request);
  absl::StatusOr<wire::HeartbeatResponse> Heartbeat(
      const wire::HeartbeatRequest& request);
  absl::StatusOr<wire::GetPlacementResponse> GetPlacement(
      const wire::GetPlacementRequest& request);
  // Calls `done` with the answer: at once if it is news or an error, otherwise
  // after the time that the request says at most, from another thread.
  //   Aborted  the process has claimed again meanwhile.
  void ClaimSteps(const wire::ClaimStepsRequest& request, StepClaim::Done done);
  absl::StatusOr<wire::ReportFailureResponse> ReportFailure(
      const wire::ReportFailureRequest& request);
  absl::StatusOr<wire::LeaveResponse> Leave(const wire::LeaveRequest& request);
  absl::StatusOr<wire::JobStatus> GetStatus(
      const wire::GetStatusRequest& request);
  absl::StatusOr<wire::InspectResponse> Inspect(
      const wire::InspectRequest& request);

  // Takes the evaluations of the run: see Coordinator::Evaluated().
  void Evaluated(const std::vector<Evaluation>& evaluations)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Takes what was found of a training set that grows: see
  // Coordinator::Follow(). Returns false while it has enough files.
  bool Follow(const FollowedLook& look) ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks until the chief may end, and returns how: see Coordinator::Outcome.
  absl::Status Wait();

  // Has claims that wait answered, and later claims not wait.
  void EndWaits();

  // Writes a last checkpoint if there is something to keep, then lets Wait()
  // return. Cuts loads in progress short. May be called twice.
  void RequestStop();

  // Lets Wait() return `outcome` without a last checkpoint: the chief is not to
  // do anything more. Ends the calls in progress.
  void End(absl::Status outcome);

 private:
  using ClaimAnswer = absl::StatusOr<wire::ClaimStepsResponse>;

  // Returns the answer to a claim; nullopt if it has to wait for news.
  std::optional<ClaimAnswer> TryClaim(const StepClaim& claim)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunClaims();
  // Returns the answers to those claims that wait for nothing any more.
  std::vector<std::pair<StepClaim::Done, ClaimAnswer>> AnswerClaims()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Records the shards' standbys, if they are not recorded. Fails at once, or
  // soon, if the disk does.
  absl::Status RecordStandbys() ABSL_LOCKS_EXCLUDED(mu_);
  // Notes that nobody listens at a ps's address. The probes' thread calls it.
  void NoteGone(const Coordinator::Suspect& suspect) ABSL_LOCKS_EXCLUDED(mu_);
  void RunOrders();
  void CarryOutOrders();
  void CarryOut(const LoadOrder& order);
  void CarryOut(const CheckpointOrder& order);
  // Waits for the end of RunOrders(); false: it has not come within `limit`.
  bool HaveOrdersEnded(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);
  void RunTime();
  void Tick(StatusLog& log, TaskNotes& notes);
  // Has the chief itself show what all tasks are asked for.
  void ShowItself() ABSL_LOCKS_EXCLUDED(mu_);
  // Records what the chief did from `begin` to now.
  void Trace(const char* name, const char* track, absl::Time begin);
  // Logs a line about the job, and notes it on the page.
  void Tell(absl::string_view line, bool is_warning);
  wire::JobStatus Status() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Notes that something has changed: there may be an order to carry out, or an
  // answer to a call that waits.
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Has the claims that wait looked at if there may be news for them.
  Coordinator::News NoteClaimNews(absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const std::unique_ptr<OrderExecutor> executor_;
  Clock& clock_;
  ChiefMetrics metrics_;
  TaskInspection self_;  // the time thread's, but for its recorder

  mutable absl::Mutex mu_;
  Coordinator coordinator_ ABSL_GUARDED_BY(mu_);
  // True while standbys are recorded, one call after the other; the time before
  // which it is not tried again.
  bool is_recording_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time next_record_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  Inspections inspections_ ABSL_GUARDED_BY(mu_);
  // True if there may be an order to carry out.
  bool has_news_ ABSL_GUARDED_BY(mu_) = true;
  WaitingClaims waiting_ ABSL_GUARDED_BY(mu_);
  // Coordinator::News::claims when the claims that wait were looked at last,
  // and true if they are to be looked at again.
  int64_t claim_news_ ABSL_GUARDED_BY(mu_) = 0;
  bool has_claim_news_ ABSL_GUARDED_BY(mu_) = false;
  bool waits_ended_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_requested_ ABSL_GUARDED_BY(mu_) = false;
  // The order that is being carried out.
  std::optional<Order> order_ ABSL_GUARDED_BY(mu_);
  bool shutting_down_ ABSL_GUARDED_BY(mu_) = false;
  bool orders_ended_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mu_);

  absl::Time next_show_ = absl::InfinitePast();  // the time thread's
  std::vector<std::thread> threads_;
  // Ends first.
  SuspectProbes probes_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_CHIEF_SERVER_H_

#include "cluster/client/chief_session.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "cluster/checkpoint/final_checkpoint.h"
#include "cluster/client/chief_outage.h"
#include "cluster/client/chief_session_metrics.h"
#include "cluster/client/ended_job.h"
#include "cluster/client/task_identity.h"
#include "cluster/client/wait_log.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {
namespace {

// Between attempts to reach a chief that does not answer, and between
// heartbeats while the cluster is not training: both starting and ending are
// as quick as these.
constexpr absl::Duration kRetryInterval = absl::Milliseconds(200);
constexpr absl::Duration kWaitingHeartbeatInterval = absl::Milliseconds(100);
constexpr absl::Duration kDefaultHeartbeatInterval = absl::Seconds(1);
// Between looks for the job's last checkpoint while the chief does not answer.
constexpr absl::Duration kLookInterval = absl::Seconds(2);

// What no repetition of the call will change.
bool IsPermanent(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

std::string NameOf(const wire::Task& task) {
  return absl::StrCat(task.role(), "/", task.index());
}

class HeartbeatingSession : public ChiefSession {
 public:
  HeartbeatingSession(std::unique_ptr<ChiefClient> client, Options options,
                      Clock& clock, MetricsRegistry& metrics)
      : client_(std::move(client)),
        options_(std::move(options)),
        clock_(clock),
        metrics_(metrics, options_.task.role()),
        joined_at_(clock.Now()),
        outage_(options_.chief_timeout, clock.Now()) {}

  ~HeartbeatingSession() override { Stop(); }

  // Join()'s part: registers, then starts the thread.
  absl::Status Start(const std::function<bool()>& cancelled) {
    while (true) {
      absl::StatusOr<bool> registered = TryRegister();
      if (!registered.ok()) return registered.status();
      if (*registered) break;
      if (FindsEndedJob()) return absl::OkStatus();
      Pause(kRetryInterval);
      if (cancelled && cancelled()) {
        return absl::CancelledError(absl::StrCat(
            NameOf(options_.task), ": stopped before the chief answered"));
      }
    }
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  const wire::RegisterResponse& registration() const override {
    return registration_;
  }
  ChiefClient& chief() override { return *client_; }

  wire::HeartbeatResponse state() const override {
    absl::MutexLock lock(&mu_);
    return state_;
  }
  int64_t answers() const override {
    absl::MutexLock lock(&mu_);
    return state_number_;
  }

  using ChiefSession::Await;
  absl::Status Await(
      std::function<bool(const wire::HeartbeatResponse&)> predicate,
      absl::Duration missing_limit,
      const std::function<bool()>& cancelled) override;
  absl::Status AwaitLeave(absl::Duration limit, absl::Duration silence_limit,
                          const std::function<bool()>& is_saved) override;

  void OnLost(std::function<void(absl::Status)> callback) override {
    absl::MutexLock lock(&mu_);
    on_lost_ = std::move(callback);
  }

  void Leave(int64_t completed_steps) override {
    Stop();
    std::call_once(left_, [this, completed_steps] {
      if (!lost().ok() || ended_without_chief_) return;
      wire::LeaveRequest request;
      *request.mutable_task() = options_.task;
      request.set_completed_steps(completed_steps);
      absl::Status status = client_->Leave(request);
      if (!status.ok())
        LOG(INFO) << "the chief did not hear that this task leaves: "
                  << status.message();
    });
  }

  void Stop() override {
    {
      absl::MutexLock lock(&mu_);
      stopping_ = true;
    }
    std::call_once(joined_, [this] {
      if (thread_.joinable()) thread_.join();
    });
  }

 private:
  // The session's thread.
  void Run();
  void RunUntilLost();
  // True: the chief has answered. False: it did not, try again. An error: the
  // session is lost.
  absl::StatusOr<bool> TryRegister();
  absl::StatusOr<bool> TryHeartbeat();
  void Answered(absl::Time now);
  absl::StatusOr<bool> AfterFailure(const absl::Status& error);
  // Returns OK if the answer comes from the newest chief that is known.
  absl::Status CheckChief(int64_t chief_epoch);
  // Looks for the job's last checkpoint. If it is there, the job is complete.
  bool FindsJobComplete();
  // Does so for a task that has never had an answer.
  bool FindsEndedJob();
  void EndWithoutChief();
  void KeepState(wire::HeartbeatResponse response);
  absl::Duration HeartbeatInterval() const;

  // Waits on the clock; less when the session is told to stop, or has something
  // to tell.
  void Pause(absl::Duration duration) {
    absl::MutexLock lock(&mu_);
    auto is_urgent = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stopping_ || has_news_;
    };
    clock_.AwaitWithTimeout(mu_, absl::Condition(&is_urgent), duration);
    has_news_ = false;
  }
  bool stopping() const {
    absl::MutexLock lock(&mu_);
    return stopping_;
  }
  absl::Status lost() const {
    absl::MutexLock lock(&mu_);
    return lost_;
  }
  // Returns why a wait has to end; OK if it need not.
  absl::Status CheckAlive() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!lost_.ok() || !stopping_) return lost_;
    return absl::CancelledError(
        absl::StrCat(NameOf(options_.task), ": stopped while waiting"));
  }

  const std::unique_ptr<ChiefClient> client_;
  const Options options_;
  Clock& clock_;
  ChiefSessionMetrics metrics_;
  const absl::Time joined_at_;

  // Join() writes these before the thread starts, then the thread alone uses
  // them (`registration_` stays as it is).
  ChiefOutage outage_;
  wire::RegisterResponse registration_;
  wire::RegisterResponse newest_registration_;
  bool registered_before_ = false;
  int64_t place_epoch_ = 0;
  // The newest chief that has answered.
  int64_t chief_epoch_ = 0;
  // True once the job is known to be complete from its last checkpoint.
  bool ended_without_chief_ = false;
  absl::Time next_look_ = absl::InfinitePast();
  WaitLog wait_log_;
  absl::Duration heartbeat_interval_ = kDefaultHeartbeatInterval;

  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // True if the next heartbeat tells the chief what it does not know.
  bool has_news_ ABSL_GUARDED_BY(mu_) = false;
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;
  // The time of the chief's last answer, and whether the call since has failed.
  absl::Time last_answer_ ABSL_GUARDED_BY(mu_);
  bool is_silent_ ABSL_GUARDED_BY(mu_) = false;
  // OK while the session is alive.
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
  wire::HeartbeatResponse state_ ABSL_GUARDED_BY(mu_);
  // Counts the answers, so that Await sees every new one.
  int64_t state_number_ ABSL_GUARDED_BY(mu_) = 0;
  std::function<void(absl::Status)> on_lost_ ABSL_GUARDED_BY(mu_);

  std::once_flag left_;
  std::once_flag joined_;
  std::thread thread_;
};

void HeartbeatingSession::Run() {
  RunUntilLost();
  std::function<void(absl::Status)> callback;
  absl::Status lost;
  {
    absl::MutexLock lock(&mu_);
    auto somebody_listens = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stopping_ || on_lost_ != nullptr;
    };
    mu_.Await(absl::Condition(&somebody_listens));
    callback = std::move(on_lost_);
    lost = lost_;
  }
  if (!lost.ok() && callback) callback(lost);
}

void HeartbeatingSession::RunUntilLost() {
  while (!stopping()) {
    absl::StatusOr<bool> answered = TryHeartbeat();
    if (!answered.ok()) {
      LOG(ERROR) << "the session with the chief is over: "
                 << answered.status().message();
      absl::MutexLock lock(&mu_);
      lost_ = answered.status();
      return;
    }
    if (ended_without_chief_) return;
    Pause(*answered ? HeartbeatInterval() : kRetryInterval);
  }
}

absl::StatusOr<bool> HeartbeatingSession::TryRegister() {
  wire::RegisterRequest request;
  *request.mutable_task() = options_.task;
  request.set_metrics_address(options_.metrics_address);
  request.set_process(NameOfThisProcess());
  request.set_version(kVersion);
  request.set_place_epoch(place_epoch_);
  request.set_join_unix_micros(absl::ToUnixMicros(joined_at_));
  request.set_boot_id(BootId());
  request.set_join_boot_micros(
      absl::ToInt64Microseconds(SinceBoot() - (clock_.Now() - joined_at_)));
  if (options_.describe) options_.describe(request);
  absl::StatusOr<wire::RegisterResponse> response = client_->Register(request);
  if (!response.ok()) return AfterFailure(response.status());
  absl::Status answered = CheckChief(response->chief_epoch());
  if (!answered.ok()) return AfterFailure(answered);
  Answered(clock_.Now());
  metrics_.registrations_total.Add();
  place_epoch_ = std::max(place_epoch_, response->place_epoch());
  if (options_.on_registered) {
    answered = options_.on_registered(
        registered_before_ ? registration_ : *response, *response);
  }
  if (!answered.ok()) return answered;
  const absl::Duration interval = FromProto(response->heartbeat_interval());
  heartbeat_interval_ =
      interval > absl::ZeroDuration() ? interval : kDefaultHeartbeatInterval;
  newest_registration_ = *response;
  if (!registered_before_) registration_ = *std::move(response);
  registered_before_ = true;
  return true;
}

absl::StatusOr<bool> HeartbeatingSession::TryHeartbeat() {
  wire::HeartbeatRequest request;
  *request.mutable_task() = options_.task;
  if (options_.report) options_.report(request);
  {
    absl::MutexLock lock(&mu_);
    request.set_leaving(leaving_);
  }
  options_.inspection->Report(request);
  const absl::Time sent = clock_.Now();
  absl::StatusOr<wire::HeartbeatResponse> response =
      client_->Heartbeat(request);
  if (absl::IsNotFound(response.status())) {
    LOG(INFO) << "the chief does not know this task: registering again";
    return TryRegister();
  }
  if (!response.ok()) return AfterFailure(response.status());
  const absl::Status answered = CheckChief(response->chief_epoch());
  if (!answered.ok()) return AfterFailure(answered);
  const absl::Time now = clock_.Now();
  Answered(now);
  options_.inspection->Heard(*response, sent, now);
  const auto line = wait_log_.Line(*response, now);
  if (line && !options_.is_quiet) LOG(INFO) << *line;
  KeepState(*std::move(response));
  return true;
}

absl::Status HeartbeatingSession::CheckChief(int64_t chief_epoch) {
  if (chief_epoch >= chief_epoch_) {
    chief_epoch_ = chief_epoch;
    return absl::OkStatus();
  }
  client_->DropConnection();
  return absl::UnavailableError(absl::StrCat("the answer is that of chief ",
                                             chief_epoch, ", which chief ",
                                             chief_epoch_, " has replaced"));
}

void HeartbeatingSession::Answered(absl::Time now) {
  outage_.Answered(now);
  metrics_.chief_reachable.Set(1);
  absl::MutexLock lock(&mu_);
  last_answer_ = now;
  is_silent_ = false;
}

absl::StatusOr<bool> HeartbeatingSession::AfterFailure(
    const absl::Status& error) {
  if (IsPermanent(error)) return error;
  // Its successor may have the place.
  if (absl::IsAlreadyExists(error)) {
    return absl::UnavailableError(error.message());
  }
  metrics_.chief_reachable.Set(0);
  {
    absl::MutexLock lock(&mu_);
    is_silent_ = true;
  }
  if (FindsJobComplete()) return true;
  absl::Status outage = outage_.Failed(error, clock_.Now());
  if (!outage.ok()) return outage;
  return false;
}

bool HeartbeatingSession::FindsJobComplete() {
  const absl::Time now = clock_.Now();
  if (!registered_before_ || now < next_look_) return false;
  next_look_ = now + kLookInterval;
  const std::string& directory =
      options_.checkpoint_directory.empty()
          ? newest_registration_.checkpoint_directory()
          : options_.checkpoint_directory;
  // A chief that has restarted may have another end.
  if (!HasFinalCheckpoint(directory, newest_registration_.run_id(),
                          newest_registration_.job())) {
    return false;
  }
  LOG(INFO) << "the chief does not answer, and the job's last checkpoint is in "
            << directory << ": the job is complete";
  EndWithoutChief();
  return true;
}

bool HeartbeatingSession::FindsEndedJob() {
  const absl::Time now = clock_.Now();
  if (now - joined_at_ < kUnheardLimit || now < next_look_) return false;
  next_look_ = now + kLookInterval;
  const auto ended = RegistrationOfEndedJob(options_.checkpoint_directory);
  if (!ended) return false;
  registration_ = *ended;
  newest_registration_ = registration_;
  EndWithoutChief();
  return true;
}

void HeartbeatingSession::EndWithoutChief() {
  ended_without_chief_ = true;
  wire::HeartbeatResponse complete = state();
  complete.clear_missing_task();
  complete.clear_trouble();
  complete.set_phase(wire::COMPLETE);
  KeepState(std::move(complete));
}

void HeartbeatingSession::KeepState(wire::HeartbeatResponse response) {
  metrics_.missing_tasks.Set(response.missing_task_size());
  absl::MutexLock lock(&mu_);
  state_ = std::move(response);
  ++state_number_;
}

absl::Duration HeartbeatingSession::HeartbeatInterval() const {
  absl::MutexLock lock(&mu_);
  if (state_.phase() == wire::TRAINING && !options_.inspection->HasMore()) {
    return heartbeat_interval_;
  }
  return std::min(kWaitingHeartbeatInterval, heartbeat_interval_);
}

absl::Status HeartbeatingSession::Await(
    std::function<bool(const wire::HeartbeatResponse&)> predicate,
    absl::Duration missing_limit, const std::function<bool()>& cancelled) {
  const absl::Duration look =
      cancelled == nullptr ? absl::InfiniteDuration() : kRetryInterval;
  absl::Time deadline = absl::InfiniteFuture();
  int64_t seen = 0;
  while (true) {
    if (cancelled != nullptr && cancelled()) {
      return absl::CancelledError("stopped");
    }
    wire::HeartbeatResponse state;
    bool is_new;
    {
      absl::MutexLock lock(&mu_);
      auto has_news = [this, seen]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return state_number_ != seen || stopping_ || !lost_.ok();
      };
      clock_.AwaitWithTimeout(mu_, absl::Condition(&has_news),
                              std::min(deadline - clock_.Now(), look));
      RETURN_IF_ERROR(CheckAlive());
      is_new = state_number_ != seen;
      seen = state_number_;
      state = state_;
    }
    if (is_new && predicate(state)) return absl::OkStatus();
    if (state.missing_task().empty()) {
      deadline = absl::InfiniteFuture();
      continue;
    }
    const absl::Time now = clock_.Now();
    deadline = std::min(deadline, now + missing_limit);
    if (now < deadline) continue;
    return absl::DeadlineExceededError(absl::StrCat(
        "waited ", absl::FormatDuration(missing_limit), " in phase ",
        wire::JobPhase_Name(state.phase()), " for ", MissingTasksOf(state)));
  }
}

absl::Status HeartbeatingSession::AwaitLeave(
    absl::Duration limit, absl::Duration silence_limit,
    const std::function<bool()>& is_saved) {
  const absl::Time deadline = clock_.Now() + limit;
  {
    absl::MutexLock lock(&mu_);
    leaving_ = true;
    has_news_ = true;
    is_silent_ = false;
  }
  while (true) {
    if (is_saved()) return absl::OkStatus();
    absl::MutexLock lock(&mu_);
    if (state_.may_leave() || state_.phase() == wire::COMPLETE ||
        state_.phase() == wire::FAILED) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(CheckAlive());
    const absl::Time now = clock_.Now();
    if (is_silent_ && now >= last_answer_ + silence_limit) {
      return absl::UnavailableError("the chief does not answer");
    }
    if (now >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("there is none after ", absl::FormatDuration(limit)));
    }
    auto has_changed = [this, seen = state_number_, silent = is_silent_]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                             return state_number_ != seen || stopping_ ||
                                    !lost_.ok() || is_silent_ != silent;
                           };
    const absl::Time silent_until =
        is_silent_ ? last_answer_ + silence_limit : absl::InfiniteFuture();
    clock_.AwaitWithTimeout(
        mu_, absl::Condition(&has_changed),
        std::min({deadline - now, silent_until - now, kRetryInterval}));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChiefSession>> ChiefSession::Join(
    std::unique_ptr<ChiefClient> client, Options options, Clock& clock,
    MetricsRegistry& metrics, std::function<bool()> cancelled) {
  if (options.inspection == nullptr) {
    options.inspection = std::make_shared<TaskInspection>(clock);
  }
  auto session = std::make_unique<HeartbeatingSession>(
      std::move(client), std::move(options), clock, metrics);
  absl::Status status = session->Start(cancelled);
  if (!status.ok()) return status;
  return session;
}

}  // namespace parasol

#include "tests/simulation/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/chief_process.h"

namespace parasol::simulation {
namespace {

const TaskId& Chief() {
  static const auto* const chief = new TaskId{"chief", 0};
  return *chief;
}

// As in cluster/client/chief_session.cc, but that a task that waits looks less
// often: a schedule has fewer events.
constexpr absl::Duration kSessionDeadline = absl::Seconds(5);
constexpr absl::Duration kRetryInterval = absl::Milliseconds(300);
constexpr absl::Duration kHeartbeatInterval = absl::Seconds(1);
constexpr absl::Duration kWaitingInterval = absl::Milliseconds(300);
constexpr absl::Duration kChiefTimeout = absl::Minutes(5);

bool IsPermanent(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

}  // namespace

void Session::Join() {
  joined_at_ = last_answer_ = world_.Now(task_);
  Register();
}

void Session::Register() {
  wire::RegisterRequest request;
  *request.mutable_task() = task_.task();
  callbacks_.describe(request);
  request.set_place_epoch(place_epoch_);
  // The clocks of every second place are set back before each of its processes,
  // which run on one machine.
  const bool is_set_back = task_.place().index % 2 == 1;
  request.set_join_unix_micros(
      absl::ToUnixMicros(joined_at_ - (is_set_back ? absl::Hours(task_.number())
                                                   : absl::ZeroDuration())));
  if (is_set_back) {
    request.set_boot_id(task_.place().ToString());
    request.set_join_boot_micros(absl::ToUnixMicros(joined_at_));
  }
  world_.Call<ChiefProcess, Registration>(
      task_, Chief(), kSessionDeadline,
      [request = std::move(request)](ChiefProcess& chief,
                                     const World::Done<Registration>& done) {
        chief.Register(request, done);
      },
      [this](absl::StatusOr<Registration> response) {
        if (has_left_) return;
        absl::Status answered = response.status();
        if (answered.ok()) answered = CheckChief(response->chief_epoch);
        if (!answered.ok()) return AfterFailure(answered, true);
        place_epoch_ = std::max(place_epoch_, response->place_epoch);
        last_answer_ = world_.Now(task_);
        if (!is_registered_) registration_ = *response;
        is_registered_ = true;
        callbacks_.on_registered(*response);
        world_.After(task_, kWaitingInterval, [this] { Heartbeat(); });
      });
}

void Session::Heartbeat(bool goes_on) {
  if (has_left_) return;
  wire::HeartbeatRequest request;
  *request.mutable_task() = task_.task();
  callbacks_.report(request);
  world_.Call<ChiefProcess, wire::HeartbeatResponse>(
      task_, Chief(), kSessionDeadline,
      [request = std::move(request)](
          ChiefProcess& chief,
          const World::Done<wire::HeartbeatResponse>& done) {
        chief.Heartbeat(request, done);
      },
      [this, goes_on](absl::StatusOr<wire::HeartbeatResponse> response) {
        if (has_left_) return;
        is_silent_ = !response.ok();
        if (!goes_on && !response.ok()) return;
        if (absl::IsNotFound(response.status())) return Register();
        absl::Status answered = response.status();
        if (answered.ok()) answered = CheckChief(response->chief_epoch());
        if (!answered.ok() && !goes_on) return;
        if (!answered.ok()) return AfterFailure(answered, false);
        last_answer_ = world_.Now(task_);
        state_ = *std::move(response);
        if (goes_on) world_.After(task_, Interval(), [this] { Heartbeat(); });
        callbacks_.on_state(state_);
      });
}

absl::Duration Session::silence() const {
  return is_silent_ ? world_.Now(task_) - last_answer_ : absl::ZeroDuration();
}

absl::Status Session::CheckChief(int64_t chief_epoch) {
  if (chief_epoch >= chief_epoch_) {
    chief_epoch_ = chief_epoch;
    task_.set_chief_epoch(chief_epoch);
    return absl::OkStatus();
  }
  world_.DropConnection(task_, Chief());
  return absl::UnavailableError("the chief has a successor");
}

absl::Duration Session::Interval() const {
  return state_.phase() == wire::TRAINING ? kHeartbeatInterval
                                          : kWaitingInterval;
}

void Session::AfterFailure(const absl::Status& error, bool was_registering) {
  // As ChiefClient does.
  if (absl::IsAborted(error)) world_.DropConnection(task_, Chief());
  absl::Status lost;
  if (IsPermanent(error)) lost = error;
  if (absl::IsAlreadyExists(error)) {
    lost = absl::UnavailableError(error.message());
  }
  if (world_.Now(task_) - last_answer_ >= kChiefTimeout) {
    lost = absl::UnavailableError("no answer of the chief");
  }
  if (!lost.ok()) {
    has_left_ = true;
    return callbacks_.on_lost(lost);
  }
  world_.After(task_, kRetryInterval, [this, was_registering] {
    if (has_left_) return;
    was_registering ? Register() : Heartbeat();
  });
}

void Session::LeaveAndExit(int64_t completed_steps,
                           const absl::Status& result) {
  Leave(completed_steps, [this, result] { world_.Exit(task_, result); });
}

void Session::Leave(int64_t completed_steps, std::function<void()> done) {
  if (std::exchange(has_left_, true)) return;
  wire::LeaveRequest request;
  *request.mutable_task() = task_.task();
  request.set_completed_steps(completed_steps);
  world_.Call<ChiefProcess, wire::LeaveResponse>(
      task_, Chief(), kSessionDeadline,
      [request = std::move(request)](
          ChiefProcess& chief, const World::Done<wire::LeaveResponse>& done) {
        chief.Leave(request, done);
      },
      [done = std::move(done)](const absl::StatusOr<wire::LeaveResponse>&) {
        done();
      });
}

void Session::ReportFailure(const absl::Status& failure,
                            std::function<void()> done) {
  wire::ReportFailureRequest request;
  *request.mutable_task() = task_.task();
  request.set_message(std::string(failure.message()));
  world_.Call<ChiefProcess, wire::ReportFailureResponse>(
      task_, Chief(), kSessionDeadline,
      [request = std::move(request)](
          ChiefProcess& chief,
          const World::Done<wire::ReportFailureResponse>& done) {
        chief.ReportFailure(request, done);
      },
      [done = std::move(done)](
          const absl::StatusOr<wire::ReportFailureResponse>&) { done(); });
}

}  // namespace parasol::simulation

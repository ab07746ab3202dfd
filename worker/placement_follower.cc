#include "worker/placement_follower.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(200);
constexpr absl::Duration kLogInterval = absl::Seconds(10);

}  // namespace

absl::StatusOr<wire::GetPlacementResponse> AwaitPlacement(
    ChiefSession& session, absl::Duration limit,
    const std::function<bool()>& is_stopping) {
  absl::StatusOr<wire::GetPlacementResponse> placement;
  const absl::Status waited = session.Await(
      [&](const wire::HeartbeatResponse& state) {
        if (HasEnded(state) || is_stopping()) return true;
        placement = session.chief().GetPlacement();
        const bool may_pass = absl::IsUnavailable(placement.status()) ||
                              absl::IsDeadlineExceeded(placement.status());
        if (may_pass) {
          LOG_EVERY(INFO, kLogInterval) << placement.status().message();
        }
        return !may_pass;
      },
      limit);
  if (is_stopping()) return absl::CancelledError("stopped");
  // It says which shard is missing.
  if (absl::IsDeadlineExceeded(waited)) return placement.status();
  RETURN_IF_ERROR(waited);
  return placement;
}

bool IsAnotherRun(ChiefSession& session) {
  const absl::StatusOr<wire::GetPlacementResponse> placement =
      session.chief().GetPlacement();
  return placement.ok() &&
         placement->run_id() != session.registration().run_id();
}

absl::Status AnotherRunError() {
  return absl::UnavailableError(
      "the variables were initialised anew while this worker trained: it has "
      "to start again");
}

PlacementFollower::PlacementFollower(Options options, ChiefSession& session,
                                     ParameterClient& parameters, Clock& clock)
    : options_(std::move(options)),
      session_(session),
      parameters_(parameters),
      clock_(clock),
      known_version_(options_.known_version),
      thread_([this] { Follow(); }) {}

PlacementFollower::~PlacementFollower() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  thread_.join();
}

void PlacementFollower::Follow() {
  do {
    absl::MutexLock lock(&mu_);
    if (clock_.AwaitWithTimeout(mu_, absl::Condition(&stopped_),
                                kPollInterval)) {
      return;
    }
  } while (Look(session_.state()));
}

bool PlacementFollower::Look(const wire::HeartbeatResponse& state) {
  if (state.phase() == wire::COMPLETE) {
    options_.on_complete();
    return false;
  }
  if (state.phase() == wire::FAILED) {
    options_.on_lost(absl::FailedPreconditionError(
        absl::StrCat("the job has failed: ", state.failure())));
    return false;
  }
  if (state.placement_version() == known_version_) return true;
  const absl::StatusOr<wire::GetPlacementResponse> placement =
      session_.chief().GetPlacement();
  if (!placement.ok()) return true;  // not loaded yet: the next poll asks again
  if (options_.is_synchronous &&
      placement->run_id() != session_.registration().run_id()) {
    options_.on_lost(AnotherRunError());
    return false;
  }
  const absl::Status updated = parameters_.Update(*placement);
  if (!updated.ok()) LOG(ERROR) << "new placement: " << updated.message();
  known_version_ = state.placement_version();
  return true;
}

}  // namespace parasol

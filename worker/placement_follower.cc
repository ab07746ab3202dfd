#include "worker/placement_follower.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/client/same_job.h"

namespace parasol {
namespace {

constexpr absl::Duration kPlacementPollInterval = absl::Milliseconds(200);
// While a shard is away: as long as a ps takes that acts for a lost one.
constexpr absl::Duration kAwayPollInterval = absl::Milliseconds(50);
constexpr int kAwayLooks = 60;
constexpr absl::Duration kPlacementLogInterval = absl::Seconds(10);
// Some heartbeats: a chief that has restarted may be heard after its shards.
constexpr absl::Duration kRefusalWait = absl::Seconds(15);

absl::Status JobFailed(const wire::HeartbeatResponse& state) {
  return absl::FailedPreconditionError(
      absl::StrCat("the job has failed: ", state.failure()));
}

}  // namespace

absl::StatusOr<wire::GetPlacementResponse> AwaitPlacement(
    ChiefSession& session, absl::Duration limit,
    const std::function<bool()>& is_stopping) {
  absl::StatusOr<wire::GetPlacementResponse> placement;
  const absl::Status waited = session.Await(
      [&](const wire::HeartbeatResponse& state) {
        if (HasEnded(state)) return true;
        placement = session.chief().GetPlacement();
        const bool may_pass = absl::IsUnavailable(placement.status()) ||
                              absl::IsDeadlineExceeded(placement.status());
        if (may_pass) {
          LOG_EVERY(INFO, kPlacementLogInterval)
              << placement.status().message();
        }
        return !may_pass;
      },
      limit, is_stopping);
  if (is_stopping()) return absl::CancelledError("stopped");
  // It says which shard is missing.
  if (absl::IsDeadlineExceeded(waited)) return placement.status();
  RETURN_IF_ERROR(waited);
  return placement;
}

absl::Status WhyRefused(ChiefSession& session, const absl::Status& refusal,
                        Clock& clock,
                        const std::function<bool()>& is_stopping) {
  // A session may wait for as long as its chief answers.
  const absl::Time give_up = clock.Now() + kRefusalWait;
  absl::Status others;
  absl::Status ended;
  const absl::Status waited = session.Await(
      [&](const wire::HeartbeatResponse& state) {
        others = CheckVariables(session.registration(), state.run_id(),
                                state.layout());
        if (HasEnded(state)) {
          ended = state.failure().empty() ? refusal : JobFailed(state);
        }
        return !ended.ok() || !others.ok() || clock.Now() >= give_up;
      },
      kRefusalWait, is_stopping);
  if (!others.ok()) return others;
  if (!ended.ok()) return ended;
  if (is_stopping()) return absl::CancelledError("stopped");
  if (!waited.ok() && !absl::IsDeadlineExceeded(waited)) return waited;
  return absl::UnavailableError(absl::StrCat(
      refusal.message(), "; the chief knows of no others after ",
      absl::FormatDuration(kRefusalWait), ": this worker has to start again"));
}

PlacementFollower::PlacementFollower(Options options, ChiefSession& session,
                                     Clock& clock)
    : options_(std::move(options)),
      session_(session),
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
  while (AwaitLook() && Look(session_.state())) {
  }
}

bool PlacementFollower::AwaitLook() {
  const absl::Time last = clock_.Now();
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (clock_.AwaitWithTimeout(mu_, absl::Condition(&stopped_),
                                  kAwayPollInterval)) {
        return false;
      }
    }
    const bool is_away = options_.is_away();
    if (!is_away) away_looks_ = 0;
    if (is_away && ++away_looks_ <= kAwayLooks) return true;
    if (clock_.Now() - last >= kPlacementPollInterval) return true;
  }
}

bool PlacementFollower::Look(const wire::HeartbeatResponse& state) {
  if (state.phase() == wire::COMPLETE) {
    options_.on_complete();
    return false;
  }
  if (state.phase() == wire::FAILED) {
    options_.on_lost(JobFailed(state));
    return false;
  }
  const absl::Status same =
      CheckVariables(session_.registration(), state.run_id(), state.layout());
  if (!same.ok()) {
    options_.on_lost(same);
    return false;
  }
  // The last answer of a chief that is silent says nothing new.
  const int64_t answers = session_.answers();
  if (answers != std::exchange(answers_, answers)) {
    options_.on_loading(state.loading_shard());
  }
  const bool is_asked = away_looks_ > 0 && away_looks_ <= kAwayLooks;
  if (state.placement_version() == known_version_ && !is_asked) return true;
  const absl::StatusOr<wire::GetPlacementResponse> placement =
      session_.chief().GetPlacement();
  // Not loaded yet, or from a chief that was replaced: the next poll asks
  // again.
  if (!placement.ok() ||
      placement->placement_version() < state.placement_version() ||
      placement->placement_version() == known_version_) {
    return true;
  }
  absl::Status updated = CheckVariables(
      session_.registration(), placement->run_id(), placement->layout());
  if (updated.ok()) updated = options_.on_placement(*placement);
  if (!updated.ok()) {
    options_.on_lost(absl::UnavailableError(updated.message()));
    return false;
  }
  known_version_ = placement->placement_version();
  return true;
}

}  // namespace parasol

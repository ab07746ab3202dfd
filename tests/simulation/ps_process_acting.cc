// The part of a simulated ps's process that has standbys, and acts for lost ps.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/trust/process_secret.h"
#include "tests/simulation/chief_process.h"
#include "tests/simulation/ps_process.h"

namespace parasol::simulation {
namespace {

// As in ps/lost_questions.h, but that a schedule has fewer events.
constexpr absl::Duration kFirstAsk = absl::Milliseconds(20);
constexpr absl::Duration kAskLimit = absl::Seconds(15);
constexpr absl::Duration kAskDeadline = absl::Seconds(4);
constexpr absl::Duration kTakeDeadline = absl::Seconds(15);
// Less than a lease.
constexpr absl::Duration kHeardLately = absl::Seconds(5);
constexpr absl::Duration kExitLook = absl::Milliseconds(100);

}  // namespace

Process* PsProcess::part() const {
  return acts_here_ != nullptr && acts_here_->alive() ? acts_here_ : nullptr;
}

void PsProcess::Ended() {
  if (!Replicates()) return;
  // Before what is here goes.
  if (held_ && !is_saved_away_ && !link_.IsProtected() && !IsReplaced()) {
    world().auditor().Excuse(held_->shard);
  }
  link_.End();
  const std::vector<Process*> live = world().Live();
  for (const auto& [shard, standby] : hosted_.all()) {
    const int holder = world().auditor().holder(shard);
    const bool is_alive = std::any_of(
        live.begin(), live.end(),
        [holder](const Process* other) { return other->number() == holder; });
    if (!is_alive) world().auditor().Excuse(shard);
  }
  if (part() != nullptr) world().Kill(*acts_here_);
}

void PsProcess::PrimaryIsLost(int shard, uint64_t number) {
  if (!hosted_.EndStream(shard, number)) return;
  lost_at_ = world().Now(*this);
  if (!std::exchange(is_asking_, true)) AskForLost(kFirstAsk);
}

void PsProcess::AskForLost(absl::Duration pause) {
  const std::vector<wire::LostPrimary> lost = hosted_.LostPrimaries();
  if (lost.empty() || world().Now(*this) - lost_at_ > kAskLimit) {
    is_asking_ = false;
    return;
  }
  wire::HeartbeatRequest request;
  *request.mutable_task() = task();
  Describe(request);
  request.mutable_lost_primary()->Assign(lost.begin(), lost.end());
  world().Call<ChiefProcess, wire::HeartbeatResponse>(
      *this, {"chief", 0}, kAskDeadline,
      [request = std::move(request)](
          ChiefProcess& chief,
          const World::Done<wire::HeartbeatResponse>& done) {
        chief.Heartbeat(request, done);
      },
      [this, pause](const absl::StatusOr<wire::HeartbeatResponse>& answer) {
        if (answer.ok()) OnAnswer(*answer);
        if (!alive()) return;
        world().After(*this, pause, [this, pause] { AskForLost(2 * pause); });
      });
}

void PsProcess::OnAnswer(const wire::HeartbeatResponse& answer) {
  if (!Replicates() || is_exiting_) return;
  for (const wire::ActingOrder& order : answer.act_for()) Act(order);
  const bool is_saved = stays_ || !world().rules().acting_leaves_what_stays;
  if (acting_ && answer.may_leave() && is_saved && !is_sealed_) {
    world().Trace(this, "hands over");
    is_sealed_ = true;
    LeaveSaved(true);
  }
}

void PsProcess::Act(const wire::ActingOrder& order) {
  if (is_sealed_ || part() != nullptr) return;
  const auto shard = static_cast<int>(order.ps_index());
  if (order.number() != 0 && !hosted_.Has(shard, order.number())) return;
  auto acting =
      std::make_unique<PsProcess>(world(), order, *this, world().NextNumber());
  acts_here_ = acting.get();
  world().Launch(std::move(acting));
}

void PsProcess::ExitAlone(const absl::Status& result) {
  is_exiting_ = true;
  if (part() == nullptr) return world().Exit(*this, result);
  if (!acts_here_->is_sealed_) acts_here_->Terminate();
  world().After(*this, kExitLook, [this, result] { ExitAlone(result); });
}

void PsProcess::TakeStandby(const LoadCall& call,
                            const World::Done<Nothing>& done) {
  const uint64_t number = call.standby ? call.standby->number() : 0;
  if (number == StandbyBoard::kSaved || number == StandbyBoard::kAlone) {
    return LoadFrom(call, std::nullopt, done);
  }
  const auto take = [this, call,
                     done](const absl::StatusOr<ShardValues>& taken) {
    if (taken.ok()) return LoadFrom(call, *taken, done);
    if (absl::IsNotFound(taken.status())) {
      // The process that has it may live, but its place is another one's.
      const std::vector<Process*> live = world().Live();
      const bool is_elsewhere =
          std::any_of(live.begin(), live.end(), [&call](const Process* other) {
            return other->task().role() == "ps" &&
                   static_cast<const PsProcess*>(other)->hosted_.Has(
                       call.shard, call.standby->number());
          });
      if (is_elsewhere && PlaceOf(call.standby->address()).role == "ps") {
        world().auditor().Excuse(call.shard);
      }
      return LoadFrom(call, std::nullopt, done);
    }
    loading_ = false;
    done(absl::UnavailableError(taken.status().message()));
  };
  const int64_t epoch = session_.place_epoch();
  if (acting_) {
    return take(acting_->host.hosted_.Take(call.shard, number, epoch,
                                           /*itself=*/true));
  }
  world().Call<PsProcess, ShardValues>(
      *this, PlaceOf(call.standby->address()), kTakeDeadline,
      [shard = call.shard, number, epoch, to = call.standby->ps_incarnation()](
          PsProcess& host, const World::Done<ShardValues>& done) {
        if (PublicNumber(host.incarnation()) != to) {
          return done(absl::UnavailableError("another process"));
        }
        done(host.hosted().Take(shard, number, epoch, /*itself=*/false));
      },
      take);
}

void PsProcess::CheckIsLost() const {
  for (Process* const live : world().Live()) {
    if (live->place() != TaskId{"ps", index_} || !live->is_reachable() ||
        live->has_refused()) {
      continue;
    }
    const auto& former = static_cast<const PsProcess&>(*live);
    const absl::Duration silence =
        world().Now(*live) - former.session_.last_answer();
    // What it hears when it goes on is old.
    const absl::Duration reachable =
        world().loop().now() - live->reachable_since();
    if (!former.held_ || silence >= kHeardLately || reachable < kHeardLately) {
      continue;
    }
    world().auditor().Violate(
        "acts for a live ps",
        absl::StrCat(live->name(), " has just been heard"));
  }
}

void PsProcess::ExcuseWhatIsGone(int shard) {
  if (!Replicates()) return;
  const int holder = world().auditor().holder(shard);
  for (Process* const live : world().Live()) {
    if (live->number() != holder || live == this) continue;
    const auto* const former = static_cast<const PsProcess*>(live);
    if (former->held_ && !former->IsProtected()) {
      world().auditor().Excuse(shard);
    }
  }
}

}  // namespace parasol::simulation

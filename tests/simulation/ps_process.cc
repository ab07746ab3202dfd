#include "tests/simulation/ps_process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/trust/process_secret.h"
#include "tests/simulation/job_of.h"

namespace parasol::simulation {
namespace {

constexpr absl::Duration kLoadTime = absl::Milliseconds(100);
constexpr absl::Duration kSnapshotTime = absl::Milliseconds(50);
// As CutHold::kLimit of ps/shard.
constexpr absl::Duration kHoldLimit = absl::Seconds(5);
// As PsTask's drain_timeout.
constexpr absl::Duration kDrainLimit = absl::Seconds(40);
constexpr absl::Duration kDrainSilence = absl::Seconds(10);
// As in ChiefSession::AwaitLeave().
constexpr absl::Duration kSavedLook = absl::Milliseconds(200);

}  // namespace

PsProcess::PsProcess(World& world, int index, int number)
    : PsProcess(world, {"ps", index}, index, number, std::nullopt) {}

PsProcess::PsProcess(World& world, const wire::ActingOrder& order,
                     PsProcess& host, int number)
    : PsProcess(world, {"acting", number}, order.ps_index(), number,
                Acting{host, order.number()}) {}

PsProcess::PsProcess(World& world, TaskId place, int index, int number,
                     std::optional<Acting> acting)
    : ShardHolder(world, std::move(place), number),
      index_(index),
      acting_(acting),
      session_(
          world, *this,
          {.describe =
               [this](wire::RegisterRequest& request) {
                 if (acting_) {
                   request.set_acting_address(
                       absl::StrCat("acting-", this->number()));
                   request.set_acting_order(acting_->order);
                 }
                 if (!held_) return;
                 request.set_run_id(held_->run_id);
                 request.set_layout(held_->layout);
               },
           .report =
               [this](wire::HeartbeatRequest& request) { Describe(request); },
           .on_registered =
               [this](const Registration& registration) {
                 if (registration.chief_epoch > chief_epoch_) {
                   chief_epoch_ = registration.chief_epoch;
                   load_number_ = 0;
                 }
               },
           .on_state = [this](const auto& state) { OnState(state); },
           .on_lost = [this](const absl::Status& why) { ExitAlone(why); }}),
      link_(world, *this,
            {.describe =
                 [this](wire::HeartbeatRequest& request) { Describe(request); },
             .on_answer = [this](const auto& answer) { OnAnswer(answer); },
             .state =
                 [this] {
                   ShardValues state = *held_;
                   state.windows = dedup_->Windows();
                   return state;
                 },
             .place_epoch = [this] { return session_.place_epoch(); }}) {}

void PsProcess::Start() {
  session_.Join();
  if (Replicates()) link_.Start();
}

wire::Task PsProcess::task() const {
  wire::Task task = Process::task();
  task.set_role("ps");
  task.set_index(index_);
  if (acting_) task.set_host_index(acting_->host.index_);
  return task;
}

void PsProcess::Describe(wire::HeartbeatRequest& request) const {
  request.set_leaving(is_sealed_);
  request.set_updates(ProgressNow());
  if (!held_) return;
  request.set_run_id(held_->run_id);
  request.set_layout(held_->layout);
}

void PsProcess::OnState(const wire::HeartbeatResponse& state) {
  OnAnswer(state);
  if (!alive()) return;
  if (state.phase() == wire::COMPLETE) {
    session_.Leave(0, [this] { ExitAlone(absl::OkStatus()); });
  } else if (state.phase() == wire::FAILED) {
    session_.Leave(0, [this, failure = state.failure()] {
      ExitAlone(absl::FailedPreconditionError(failure));
    });
  } else if (is_sealed_ && state.may_leave()) {
    LeaveSaved(true);
  } else {
    GoOn();
  }
}

void PsProcess::Terminate() {
  world().After(*this, absl::ZeroDuration(), [this] {
    is_sealed_ = true;
    world().Trace(this, "is told to end");
    if (part() != nullptr) acts_here_->Terminate();
    if (!held_) return LeaveSaved(false);
    session_.Hurry();
    // The answer is there by then.
    world().After(*this, kSavedLook, [this] {
      const wire::JobPhase phase = session_.state().phase();
      const bool is_needed =
          phase == wire::TRAINING || phase == wire::FINISHING;
      if (!IsUnsaved() && !is_needed) return LeaveSaved(false);
      LeaveWhenSaved();
    });
    world().After(*this, kDrainLimit, [this] { LeaveSaved(false); });
  });
}

void PsProcess::LeaveWhenSaved() {
  const bool is_staying = stays_ || stays_at_ < INT64_MAX;
  if (is_staying && IsSaved()) return LeaveSaved(true);
  const absl::Duration limit =
      IsUnsaved() ? kDrainSilence : absl::ZeroDuration();
  if (session_.silence() > limit) return LeaveSaved(IsSaved());
  world().After(*this, kSavedLook, [this] { LeaveWhenSaved(); });
}

int64_t PsProcess::ProgressNow() const {
  if (!IsSynchronous()) return pushes_;
  if (chunks_ == nullptr) return 0;
  const std::vector<int64_t> updates = chunks_->updates();
  return *std::max_element(updates.begin(), updates.end());
}

// SavedFile::Has().
bool PsProcess::IsSaved() const {
  return held_ && saved_ != nullptr && ProgressNow() <= saved_progress_ &&
         IsOnDisk(saved_);
}

// SavedFile::AnyHas().
bool PsProcess::WasSaved() const {
  return held_ && std::any_of(before_.begin(), before_.end(), [&](auto& file) {
           return ProgressNow() <= file.first && IsOnDisk(file.second);
         });
}

bool PsProcess::IsOnDisk(
    const std::shared_ptr<const ShardValues>& values) const {
  for (const int64_t step : world().disk().Steps()) {
    const Checkpoint* const checkpoint = world().disk().Find(step);
    if (checkpoint->files[held_->shard] == values) return true;
  }
  return false;
}

void PsProcess::GoOnTaking() {
  stays_ = false;
  stays_at_ = INT64_MAX;
  if (chunks_ != nullptr) chunks_->Hold(INT64_MAX);
}

void PsProcess::LeaveSaved(bool is_saved) {
  if (is_saved && held_ && !IsSynchronous()) {
    world().auditor().PsLeaves(
        number(), *held_,
        world().disk().Find(world().disk().NewestIntact(held_->run_id)));
  }
  is_saved_away_ = is_saved;
  session_.Leave(0,
                 [this] { ExitAlone(absl::UnavailableError("told to end")); });
}

void PsProcess::GoOn() {
  const wire::HeartbeatResponse& state = session_.state();
  if (chunks_ != nullptr && state.run_id() == held_->run_id) {
    chunks_->GoOnAt(state.global_step());
  }
}

bool PsProcess::IsSynchronous() const {
  return world().schedule().shape.mode == Shape::Mode::kSynchronous;
}

bool PsProcess::HoldsValues(const LoadCall& call) const {
  return held_ && held_->run_id == call.run_id &&
         held_->layout == call.layout && held_->shard == call.shard;
}

bool PsProcess::Holds(const LoadCall& call) const {
  return HoldsValues(call) && held_->hyperparameters == call.hyperparameters;
}

absl::Status PsProcess::Admit(uint64_t incarnation, int64_t chief_epoch) {
  if (world().rules().ps_checks_incarnation &&
      incarnation != this->incarnation()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the order is for another process than ", name()));
  }
  if (chief_epoch < chief_epoch_) {
    return absl::FailedPreconditionError("the order's chief has a successor");
  }
  if (chief_epoch > chief_epoch_) load_number_ = 0;
  chief_epoch_ = chief_epoch;
  return absl::OkStatus();
}

void PsProcess::Load(const LoadCall& call, const World::Done<Nothing>& done) {
  const absl::Status admitted = Admit(call.incarnation, call.chief_epoch);
  if (!admitted.ok()) return done(admitted);
  if (world().rules().ps_checks_load_number && call.number < load_number_) {
    return done(absl::FailedPreconditionError("the order comes late"));
  }
  load_number_ = call.number;
  if (loading_) return done(absl::UnavailableError("still loading"));
  if (world().rules().one_job && HoldsValues(call)) {
    held_->hyperparameters = call.hyperparameters;
    held_->learning_rate = call.learning_rate;
    world().auditor().RateTaken(number(), *held_);
  }
  if (Holds(call)) {
    GoOnTaking();
    if (Replicates()) link_.Loaded(false, call.standby->number());
    return done(Nothing());
  }
  loading_ = true;
  world().After(*this, kLoadTime,
                [this, call, done] { TakeStandby(call, done); });
}

void PsProcess::LoadFrom(const LoadCall& call, std::optional<ShardValues> taken,
                         const World::Done<Nothing>& done) {
  loading_ = false;
  const bool is_of_standby = taken.has_value();
  if (acting_ && !IsReplaced()) CheckIsLost();
  const std::optional<ShardValues> before = std::exchange(held_, std::nullopt);
  const std::shared_ptr<SyncShard> replaced = std::move(chunks_);
  if (replaced != nullptr) {
    replaced->Abandon(absl::UnavailableError("the shard is replaced"));
  }
  ShardValues values;
  if (taken) {
    values = *std::move(taken);
  } else if (call.checkpoint >= 0) {
    const auto checkpoint =
        world().disk().Read(call.checkpoint, world().random());
    if (!checkpoint.ok()) return done(checkpoint.status());
    values = *(*checkpoint)->files[call.shard];
  }
  values.run_id = call.run_id;
  values.layout = call.layout;
  values.hyperparameters = call.hyperparameters;
  values.learning_rate = call.learning_rate;
  values.shard = call.shard;
  if (!is_of_standby) ExcuseWhatIsGone(call.shard);
  held_ = std::move(values);
  dedup_.emplace();
  dedup_->Restore(held_->windows);
  if (IsSynchronous()) {
    held_->updates.resize(kChunksPerShard);
    chunks_ = std::make_shared<SyncShard>(held_->updates,
                                          call.checkpoint >= 0
                                              ? StepState::Origin::kRestored
                                              : StepState::Origin::kInitial,
                                          world().schedule().shape.replicas);
    GoOn();
  }
  pushes_ = 0;
  // No checkpoint has what a standby had.
  loaded_progress_ = is_of_standby ? -1 : ProgressNow();
  saved_ = nullptr;
  before_.clear();
  GoOnTaking();
  world().Trace(this, "has loaded ",
                is_of_standby ? "its standby" : "checkpoint ",
                is_of_standby ? "" : absl::StrCat(call.checkpoint));
  if (!IsReplaced()) {
    world().auditor().Loaded(number(), *held_, before ? &*before : nullptr);
    world().auditor().RateTaken(number(), *held_);
  }
  if (Replicates()) link_.Loaded(true, call.standby->number());
  done(Nothing());
}

bool PsProcess::IsReplaced() const {
  // Its successor may be gone, too.
  if (Replicates() && held_) {
    const int holder = world().auditor().holder(held_->shard);
    if (holder > number() && world().WasAt({"ps", index_}, holder)) return true;
  }
  const std::vector<Process*> live = world().Live();
  return std::any_of(live.begin(), live.end(), [this](const Process* other) {
    const wire::Task task = other->task();
    if (task.role() != "ps" || task.index() != index_ ||
        other->number() <= number()) {
      return false;
    }
    return !Replicates() ||
           static_cast<const PsProcess*>(other)->held_.has_value();
  });
}

void PsProcess::Snapshot(
    const SnapshotCall& call,
    const World::Done<std::shared_ptr<const ShardValues>>& done) {
  const absl::Status admitted = Admit(call.incarnation, call.chief_epoch);
  if (!admitted.ok()) return done(admitted);
  if (!held_ || held_->run_id != call.run_id) {
    return done(absl::FailedPreconditionError(
        absl::StrCat(name(), " does not hold run ", call.run_id)));
  }
  if (world().rules().ps_checks_load_number && call.number < load_number_) {
    return done(absl::FailedPreconditionError("the order comes late"));
  }
  load_number_ = call.number;
  const absl::Status written = world().disk().CheckWrite(world().random());
  if (!written.ok()) return done(written);
  if (call.stay) saved_ = nullptr;
  if (call.at_updates) return SnapshotStep(*call.at_updates, call.stay, done);
  auto values = std::make_shared<ShardValues>(*held_);
  values->windows = dedup_->Windows();
  stays_ |= call.stay;
  Save(values, pushes_, ++snapshots_, done);
}

// A ps writes one file at a time. Here an earlier one, which its chief has
// given up, is not noted.
void PsProcess::Save(
    std::shared_ptr<const ShardValues> values, int64_t progress, int64_t number,
    const World::Done<std::shared_ptr<const ShardValues>>& done) {
  world().After(*this, kSnapshotTime, [this, values, progress, number, done] {
    if (number == snapshots_) {
      saved_ = values;
      saved_progress_ = progress;
      before_.emplace_back(progress, values);
      if (before_.size() > 3) before_.pop_front();
    }
    done(values);
  });
}

void PsProcess::PrepareSnapshot(const SnapshotCall& call,
                                const World::Done<Updates>& done) {
  const absl::Status admitted = Admit(call.incarnation, call.chief_epoch);
  if (!admitted.ok()) return done(admitted);
  if (!held_ || held_->run_id != call.run_id || chunks_ == nullptr) {
    return done(absl::FailedPreconditionError(
        absl::StrCat(name(), " does not hold run ", call.run_id)));
  }
  const int hold = ++holds_;
  done(chunks_->HoldNow());
  world().After(*this, kHoldLimit, [this, hold, chunks = chunks_] {
    if (hold == holds_) chunks->Hold(stays_at_);
  });
}

void PsProcess::SnapshotStep(
    int64_t updates, bool stay,
    const World::Done<std::shared_ptr<const ShardValues>>& done) {
  chunks_->SnapshotAt(updates,
                      [this, updates, number = ++snapshots_,
                       done](absl::StatusOr<std::vector<int64_t>> captured) {
                        if (!captured.ok()) return done(captured.status());
                        auto values = std::make_shared<ShardValues>(*held_);
                        values->updates = *std::move(captured);
                        Save(values, updates, number, done);
                      });
  ++holds_;
  if (stay) stays_at_ = updates;
  chunks_->Hold(stays_at_);
}

absl::Status PsProcess::Check(const Operation& operation) const {
  if (world().rules().ps_checks_incarnation &&
      operation.incarnation != PublicNumber(incarnation())) {
    return absl::UnavailableError(
        absl::StrCat("the operation is for another process than ", name()));
  }
  if (!held_) {
    return absl::UnavailableError(absl::StrCat(name(), " holds nothing"));
  }
  if (held_->run_id != operation.run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat(name(), " holds another run"));
  }
  if (held_->layout == operation.layout) return absl::OkStatus();
  if (world().rules().ps_checks_layout) {
    return absl::FailedPreconditionError(
        absl::StrCat(name(), " has another layout"));
  }
  world().auditor().Violate("two layouts",
                            absl::StrCat(name(),
                                         " carries out an operation of a "
                                         "worker with another layout"));
  return absl::OkStatus();
}

void PsProcess::Execute(const Operation& operation,
                        const World::Done<OperationResult>& done) {
  const absl::Status may = Check(operation);
  if (!may.ok()) return done(may);
  const bool is_asynchronous_push = operation.sequence > 0 && !IsSynchronous();
  if (is_sealed_ && is_asynchronous_push &&
      world().rules().leaving_ps_is_sealed) {
    return done(absl::UnavailableError(absl::StrCat(name(), " is leaving")));
  }
  if (stays_ && is_asynchronous_push) {
    return done(absl::UnavailableError(absl::StrCat(name(), " stays")));
  }
  if (IsSynchronous()) return ExecuteStep(operation, done);
  if (operation.sequence == 0) return done(OperationResult());
  const absl::StatusOr<Claim> claim =
      dedup_->Mark(operation.worker, operation.sequence);
  if (!claim.ok()) return done(claim.status());
  const bool is_new = *claim == Claim::kNew;
  world().auditor().Applied(number(), *held_, operation.step, !is_new);
  if (is_new) {
    ++pushes_;
    held_->applied.Add(operation.step);
    dedup_->Confirm(operation.worker, operation.sequence);
  }
  if (!Replicates()) return done(OperationResult());
  const StandbyRecord record = {.worker = operation.worker,
                                .sequence = operation.sequence,
                                .step = operation.step};
  link_.Append(is_new ? &record : nullptr, [this, shard = held_->shard,
                                            step = operation.step,
                                            done](const absl::Status& kept) {
    if (!kept.ok()) return done(kept);
    world().auditor().Acknowledged(number(), shard, step, !link_.IsProtected());
    done(OperationResult());
  });
}

void PsProcess::ExecuteStep(const Operation& operation,
                            const World::Done<OperationResult>& done) {
  const auto answer = [this, done](const absl::StatusOr<Updates>& updates) {
    if (!updates.ok()) return done(updates.status());
    world().auditor().StepReached(updates->max);
    done(OperationResult{*updates});
  };
  if (operation.sequence == 0) {
    return chunks_->Pull(operation.min_updates, answer);
  }
  chunks_->Push(operation.chunk, operation.push, answer);
}

}  // namespace parasol::simulation

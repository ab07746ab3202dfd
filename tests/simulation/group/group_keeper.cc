#include "tests/simulation/group/group_keeper.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "tests/simulation/group/group_model.h"

namespace parasol::simulation {
namespace {

constexpr absl::Duration kLoadTime = absl::Milliseconds(100);
constexpr absl::Duration kSnapshotTime = absl::Milliseconds(50);
// As WorkerTask's limit.
constexpr absl::Duration kCheckpointLimit = absl::Seconds(40);

}  // namespace

GroupKeeper::GroupKeeper(World& world, int number, GroupWorker& worker)
    : ShardHolder(world, {"ps", 0}, number),
      worker_(worker),
      session_(
          world, *this,
          {.describe =
               [this](wire::RegisterRequest& request) { Describe(request); },
           .report =
               [this](wire::HeartbeatRequest& request) {
                 request.set_leaving(on_saved_ != nullptr);
                 Describe(request);
               },
           .on_registered =
               [this](const Registration& registration) {
                 chief_epoch_ =
                     std::max(chief_epoch_, registration.chief_epoch);
               },
           .on_state = [this](const auto& state) { OnState(state); },
           // The worker's own session ends it.
           .on_lost =
               [this](const absl::Status&) {
                 has_lost_session_ = true;
                 worker_.End(absl::UnavailableError(
                     "the chief has another process as the state's place"));
                 EndWait();
               }}) {}

template <typename Request>
void GroupKeeper::Describe(Request& request) const {
  if (!worker_.state()->version().is_there()) return;
  request.set_run_id(worker_.registration().run_id);
  request.set_layout(worker_.registration().layout);
}

void GroupKeeper::OnState(const wire::HeartbeatResponse& state) {
  if (on_saved_ != nullptr && state.may_leave()) EndWait();
}

void GroupKeeper::AwaitCheckpoint(std::function<void()> done) {
  if (worker_.state()->version().epoch == 0) return done();
  on_saved_ = std::move(done);
  world().After(*this, kCheckpointLimit, [this] { EndWait(); });
}

void GroupKeeper::EndWait() {
  if (on_saved_ == nullptr) return;
  std::exchange(on_saved_, nullptr)();
}

void GroupKeeper::Leave(std::function<void()> done) {
  if (has_lost_session_) return done();
  session_.Leave(/*completed_steps=*/0, std::move(done));
}

absl::Status GroupKeeper::Admit(uint64_t incarnation, int64_t chief_epoch,
                                const std::string& run_id) {
  if (incarnation != this->incarnation()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the order is for another process than ", name()));
  }
  if (chief_epoch < chief_epoch_) {
    return absl::FailedPreconditionError("the order's chief has a successor");
  }
  chief_epoch_ = chief_epoch;
  if (run_id == worker_.registration().run_id) return absl::OkStatus();
  return absl::FailedPreconditionError("worker/0 works on another run");
}

void GroupKeeper::Load(const LoadCall& call, const World::Done<Nothing>& done) {
  const absl::Status admitted =
      Admit(call.incarnation, call.chief_epoch, call.run_id);
  if (!admitted.ok()) return done(admitted);
  if (is_loading_) return done(absl::UnavailableError("still loading"));
  if (worker_.state()->version().is_there()) {
    worker_.state()->steps().GoOn();
    return done(Nothing());
  }
  is_loading_ = true;
  world().After(*this, kLoadTime,
                [this, call, done] { FinishLoad(call, done); });
}

void GroupKeeper::FinishLoad(const LoadCall& call,
                             const World::Done<Nothing>& done) {
  is_loading_ = false;
  GroupState& state = *worker_.state();
  // StateOrders::Load().
  state.SetGoesOnAt(call.global_step);
  auto parameters = state.MakeParameters();
  CHECK(parameters.ok()) << parameters.status().message();
  if (call.checkpoint >= 0) {
    const auto checkpoint =
        world().disk().Read(call.checkpoint, world().random());
    if (!checkpoint.ok()) return done(checkpoint.status());
    const ShardValues& file = *(*checkpoint)->files[call.shard];
    SetContents({file.elements, file.updates}, **parameters);
  }
  world().Trace(this, "has loaded checkpoint ", call.checkpoint);
  state.Load(*std::move(parameters), std::max<int64_t>(0, call.checkpoint));
  worker_.Observe();
  done(Nothing());
}

void GroupKeeper::PrepareSnapshot(const SnapshotCall& call,
                                  const World::Done<Updates>& done) {
  const absl::Status admitted =
      Admit(call.incarnation, call.chief_epoch, call.run_id);
  if (!admitted.ok()) return done(admitted);
  const absl::StatusOr<int64_t> step = worker_.state()->steps().Hold();
  if (!step.ok()) return done(step.status());
  done(Updates{.min = *step, .max = *step});
}

void GroupKeeper::Snapshot(
    const SnapshotCall& call,
    const World::Done<std::shared_ptr<const ShardValues>>& done) {
  absl::Status may = Admit(call.incarnation, call.chief_epoch, call.run_id);
  may.Update(world().disk().CheckWrite(world().random()));
  if (!may.ok()) return done(may);
  // SaveState(): the copy's contents are read before anything else
  // can change the state.
  worker_.RunThread([this, call, done] {
    GroupState& state = *worker_.state();
    const absl::StatusOr<StoreSnapshot> snapshot = state.TakeSnapshot(
        call.at_updates,
        [this, call] {
          return worker_.threads().is_abandoned() || call.is_cancelled();
        },
        call.stay);
    if (worker_.threads().is_abandoned()) return;
    if (!snapshot.ok()) return done(snapshot.status());
    auto values = std::make_shared<ShardValues>();
    values->run_id = worker_.registration().run_id;
    values->layout = worker_.registration().layout;
    const absl::Status read = state.Read([&values](ParameterStore& now) {
      GroupContents contents = ContentsOf(now);
      values->elements = std::move(contents.elements);
      values->updates = std::move(contents.updates);
      return absl::OkStatus();
    });
    CHECK(read.ok()) << read.message();
    world().After(*this, kSnapshotTime, [values, done] { done(values); });
  });
}

}  // namespace parasol::simulation

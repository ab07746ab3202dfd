#include "ps/dense/chunk.h"

#include <algorithm>

#include "absl/container/fixed_array.h"
#include "base/log.h"

namespace parasol {

Chunk::Chunk(ChunkContents contents, StepState::Origin origin, bool is_frozen)
    : size_(contents.value.size()),
      is_frozen_(is_frozen),
      arrays_(std::move(contents)),
      state_(arrays_.updates, origin) {}

int64_t Chunk::Apply(const ChunkUpdater& updater, GradientReader& gradient) {
  Released nobody_waits;
  absl::MutexLock lock(&mu_);
  Update(updater,
         [&gradient](size_t max_count) { return gradient.Next(max_count); });
  state_.Complete(nobody_waits);
  return state_.updates();
}

absl::Status Chunk::CheckNotAhead(int64_t step) const {
  absl::MutexLock lock(&mu_);
  return state_.CheckNotAhead(step);
}

StepState::Entry Chunk::Contribute(const ChunkUpdater& updater,
                                   const StepPush& push,
                                   GradientReader& gradient,
                                   std::shared_ptr<Latch> latch,
                                   Released& released) {
  absl::MutexLock lock(&mu_);
  if (state_.IsNew(push, updater.replicas_to_aggregate) &&
      !sum_.HasRoom(push.replica, size_, updater.memory.get())) {
    gradient.Skip(size_);
    released.Add(std::move(latch));
    return StepState::Entry::kNoRoom;
  }
  const StepState::Entry entry =
      state_.Enter(push, updater.replicas_to_aggregate);
  state_.NotifyWhenComplete(push, std::move(latch), released);
  if (entry != StepState::Entry::kNew) {
    gradient.Skip(size_);
    return entry;
  }
  previous_ = ArrayRef();
  sum_.Add(push.replica, size_, gradient, updater.pool, updater.memory);
  CompleteIfDue(updater, released);
  return entry;
}

void Chunk::CompleteIfDue(const ChunkUpdater& updater, Released& released) {
  if (!state_.IsDue(updater.replicas_to_aggregate)) return;
  const ArrayRef mean = sum_.TakeMean();
  previous_ = arrays_.value;  // Update() leaves it as it is
  Update(updater, [&mean](size_t) -> ElementRuns::Run {
    return {reinterpret_cast<const std::byte*>(mean.data()), mean.size()};
  });
  state_.Complete(released);
}

void Chunk::NotifyAt(int64_t updates, std::shared_ptr<Latch> latch,
                     Released& released) {
  if (is_frozen_) {
    released.Add(std::move(latch));
    return;
  }
  absl::MutexLock lock(&mu_);
  state_.NotifyAt(updates, std::move(latch), released);
}

void Chunk::Hold(const ChunkUpdater& updater, int64_t updates,
                 Released& released) {
  absl::MutexLock lock(&mu_);
  state_.Hold(updates);
  CompleteIfDue(updater, released);
}

int64_t Chunk::HoldNow() {
  absl::MutexLock lock(&mu_);
  state_.Hold(state_.updates());
  return state_.updates();
}

bool Chunk::GoOnAt(int64_t updates, Released& released) {
  if (is_frozen_) return false;
  absl::MutexLock lock(&mu_);
  if (!state_.GoOnAt(updates, released)) return false;
  previous_ = ArrayRef();
  sum_.Clear();
  return true;
}

void Chunk::SnapshotAt(int64_t updates, std::shared_ptr<ChunkContents> out,
                       std::shared_ptr<Latch> latch, Released& released) {
  absl::MutexLock lock(&mu_);
  if (is_frozen_) {
    *out = arrays_;
    out->updates = updates;
    released.Add(std::move(latch));
    return;
  }
  const auto capture = [this, out]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    *out = arrays_;
    out->updates = state_.updates();
  };
  state_.SnapshotAt(updates, capture, std::move(latch), released, out.get());
}

void Chunk::CancelSnapshot(const ChunkContents* out) {
  absl::MutexLock lock(&mu_);
  state_.CancelSnapshot(out);
}

void Chunk::Abandon(const absl::Status& status, Released& released) {
  absl::MutexLock lock(&mu_);
  state_.Abandon(status, released);
}

int64_t Chunk::updates() const {
  absl::MutexLock lock(&mu_);
  return state_.updates();
}

ChunkContents Chunk::Value(int64_t min_updates) const {
  absl::MutexLock lock(&mu_);
  const int64_t updates = is_frozen_ ? min_updates : state_.updates();
  if (previous_ && updates > min_updates) {
    return {.updates = updates - 1, .value = previous_};
  }
  return {.updates = updates, .value = arrays_.value};
}

ChunkContents Chunk::Snapshot() const {
  absl::MutexLock lock(&mu_);
  ChunkContents contents = arrays_;
  contents.updates = state_.updates();
  return contents;
}

void Chunk::Update(const ChunkUpdater& updater, NextRun next_run) {
  MakeSlotsUnique(updater.pool);
  ArrayRef next =
      arrays_.value.IsUnique() ? arrays_.value : updater.pool.Allocate(size_);
  absl::FixedArray<float*> slots(arrays_.slots.size());
  for (size_t done = 0; done < size_;) {
    const ElementRuns::Run run = next_run(size_ - done);
    CHECK_GT(run.count, 0u) << "the gradient ends at " << done;
    for (size_t i = 0; i < slots.size(); ++i) {
      slots[i] = arrays_.slots[i].data() + done;
    }
    updater.optimizer.Apply(state_.updates(),
                            {.count = run.count,
                             .gradient = run.data,
                             .value = arrays_.value.data() + done,
                             .new_value = next.data() + done,
                             .slots = slots});
    done += run.count;
  }
  arrays_.value = std::move(next);
}

void Chunk::MakeSlotsUnique(ArrayPool& pool) {
  for (ArrayRef& slot : arrays_.slots) {
    if (slot.IsUnique()) continue;
    ArrayRef copy = pool.Allocate(size_);
    std::copy_n(slot.data(), size_, copy.data());
    slot = std::move(copy);
  }
}

}  // namespace parasol

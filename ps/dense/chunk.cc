#include "ps/dense/chunk.h"

#include <algorithm>

#include "absl/container/fixed_array.h"
#include "base/log.h"

namespace parasol {

Chunk::Chunk(ChunkContents contents, StepState::Origin origin)
    : size_(contents.value.size()),
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
  const StepState::Entry entry = state_.Enter(push, released);
  state_.NotifyWhenComplete(push, std::move(latch), released);
  if (entry != StepState::Entry::kNew) {
    gradient.Skip(size_);
    return entry;
  }
  // What it had collected before it jumped.
  if (state_.collected() == 1) sum_.Clear();
  sum_.Add(push.replica, size_, gradient, updater.pool);
  if (state_.collected() == updater.replicas_to_aggregate) {
    UpdateWithMean(updater);
    state_.Complete(released);
  }
  return entry;
}

void Chunk::NotifyAt(int64_t updates, uint64_t worker_incarnation,
                     std::shared_ptr<Latch> latch, Released& released) {
  absl::MutexLock lock(&mu_);
  state_.NotifyAt(updates, worker_incarnation, std::move(latch), released);
}

void Chunk::SnapshotAt(int64_t updates, std::shared_ptr<ChunkContents> out,
                       std::shared_ptr<Latch> latch, Released& released) {
  absl::MutexLock lock(&mu_);
  const auto capture = [this, out]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    *out = arrays_;
    out->updates = state_.updates();
  };
  state_.SnapshotAt(updates, capture, std::move(latch), released);
}

void Chunk::CancelSnapshot() {
  absl::MutexLock lock(&mu_);
  state_.CancelSnapshot();
}

void Chunk::Abandon(const absl::Status& status, Released& released) {
  absl::MutexLock lock(&mu_);
  state_.Abandon(status, released);
}

int64_t Chunk::updates() const {
  absl::MutexLock lock(&mu_);
  return state_.updates();
}

ChunkContents Chunk::Value() const {
  absl::MutexLock lock(&mu_);
  return {.updates = state_.updates(), .value = arrays_.value};
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

void Chunk::UpdateWithMean(const ChunkUpdater& updater) {
  const ArrayRef mean = sum_.TakeMean();
  Update(updater, [&mean](size_t) -> ElementRuns::Run {
    return {reinterpret_cast<const std::byte*>(mean.data()), mean.size()};
  });
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

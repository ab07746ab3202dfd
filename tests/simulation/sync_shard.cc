#include "tests/simulation/sync_shard.h"

#include <algorithm>
#include <utility>

namespace parasol::simulation {

SyncShard::SyncShard(const std::vector<int64_t>& updates,
                     StepState::Origin origin, size_t wanted)
    : wanted_(wanted) {
  for (const int64_t count : updates) {
    chunks_.push_back({StepState(count, origin)});
  }
}

void SyncShard::Push(size_t index, const StepPush& push, Done done) {
  Chunk& chunk = chunks_[index];
  const absl::Status not_ahead = chunk.state.CheckNotAhead(push.step);
  if (!not_ahead.ok()) return done(not_ahead);
  const auto latch = std::make_shared<Latch>(
      1, [this, done = std::move(done)](const Latch::Outcome& outcome) {
        if (!outcome.status.ok()) return done(outcome.status);
        done(Bounds());
      });
  Released released;
  const StepState::Entry entry = chunk.state.Enter(push, wanted_);
  chunk.state.NotifyWhenComplete(push, latch, released);
  if (entry != StepState::Entry::kNew) return;
  chunk.has_previous = false;
  CompleteIfDue(chunk, released);
}

void SyncShard::CompleteIfDue(Chunk& chunk, Released& released) {
  if (!chunk.state.IsDue(wanted_)) return;
  chunk.has_previous = true;
  chunk.state.Complete(released);
}

void SyncShard::Pull(int64_t min_updates, Done done) {
  const auto latch = std::make_shared<Latch>(
      chunks_.size(), [this, min_updates,
                       done = std::move(done)](const Latch::Outcome& outcome) {
        if (!outcome.status.ok()) return done(outcome.status);
        done(ValuesFor(min_updates));
      });
  Released released;
  for (Chunk& chunk : chunks_) {
    chunk.state.NotifyAt(min_updates, latch, released);
  }
}

Updates SyncShard::ValuesFor(int64_t min_updates) const {
  Updates bounds{.min = INT64_MAX, .max = 0};
  for (const Chunk& chunk : chunks_) {
    const int64_t now = chunk.state.updates();
    const int64_t given =
        chunk.has_previous && now > min_updates ? now - 1 : now;
    bounds.min = std::min(bounds.min, given);
    bounds.max = std::max(bounds.max, given);
  }
  return bounds;
}

Updates SyncShard::Bounds() const {
  Updates bounds{.min = INT64_MAX, .max = 0};
  for (const Chunk& chunk : chunks_) {
    bounds.min = std::min(bounds.min, chunk.state.updates());
    bounds.max = std::max(bounds.max, chunk.state.updates());
  }
  return bounds;
}

// All chunks stop before any is asked: none goes past the largest number.
Updates SyncShard::HoldNow() {
  for (Chunk& chunk : chunks_) chunk.state.Hold(chunk.state.updates());
  const Updates bounds = Bounds();
  Hold(bounds.max);
  return bounds;
}

void SyncShard::Hold(int64_t updates) {
  Released released;
  for (Chunk& chunk : chunks_) {
    chunk.state.Hold(updates);
    CompleteIfDue(chunk, released);
  }
}

void SyncShard::GoOnAt(int64_t updates) {
  Released released;
  for (Chunk& chunk : chunks_) {
    if (chunk.state.GoOnAt(updates, released)) chunk.has_previous = false;
  }
}

void SyncShard::SnapshotAt(int64_t updates, Captured done) {
  auto captured = std::make_shared<std::vector<int64_t>>(chunks_.size());
  const auto latch = std::make_shared<Latch>(
      chunks_.size(),
      [captured, done = std::move(done)](const Latch::Outcome& outcome) {
        if (!outcome.status.ok()) return done(outcome.status);
        done(*captured);
      });
  Released released;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    StepState& state = chunks_[i].state;
    state.SnapshotAt(
        updates, [&state, captured, i] { (*captured)[i] = state.updates(); },
        latch, released);
  }
}

void SyncShard::CancelSnapshot() {
  for (Chunk& chunk : chunks_) chunk.state.CancelSnapshot();
}

void SyncShard::Abandon(const absl::Status& status) {
  Released released;
  for (Chunk& chunk : chunks_) chunk.state.Abandon(status, released);
}

std::vector<int64_t> SyncShard::updates() const {
  std::vector<int64_t> updates;
  for (const Chunk& chunk : chunks_) updates.push_back(chunk.state.updates());
  return updates;
}

}  // namespace parasol::simulation

#ifndef PARASOL_TESTS_SIMULATION_SYNC_SHARD_H_
#define PARASOL_TESTS_SIMULATION_SYNC_SHARD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/step/latch.h"
#include "ps/step/step_state.h"

namespace parasol::simulation {

// Number of updates that values or chunks have had: the smallest and the
// largest.
struct Updates {
  int64_t min = 0;
  int64_t max = 0;
};

// A shard's chunks in synchronous training: the model of Chunk and DenseParts
// around the real StepState.
class SyncShard {
 public:
  using Done = std::function<void(absl::StatusOr<Updates>)>;
  using Captured = std::function<void(absl::StatusOr<std::vector<int64_t>>)>;

  // `updates` has an entry for each chunk; `wanted` is the number of gradients
  // that a step takes.
  SyncShard(const std::vector<int64_t>& updates, StepState::Origin origin,
            size_t wanted);

  // Enters a gradient into one chunk, and answers when its step is complete.
  void Push(size_t chunk, const StepPush& push, Done done);
  // Answers when all chunks have had `min_updates`, with the oldest such values
  // that they have.
  void Pull(int64_t min_updates, Done done);

  // Lets no chunk have more updates than it has; returns how many.
  Updates HoldNow();
  void Hold(int64_t updates);
  // Goes on at `updates` if it was restored and is behind.
  void GoOnAt(int64_t updates);

  // Answers with the chunks' updates at exactly `updates`.
  void SnapshotAt(int64_t updates, Captured done);
  void CancelSnapshot();

  // Ends all waits with `status`.
  void Abandon(const absl::Status& status);

  std::vector<int64_t> updates() const;

 private:
  struct Chunk {
    StepState state;
    // True if the values before the last update are kept.
    bool has_previous = false;
  };

  void CompleteIfDue(Chunk& chunk, Released& released);
  Updates ValuesFor(int64_t min_updates) const;
  Updates Bounds() const;

  const size_t wanted_;
  std::vector<Chunk> chunks_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_SYNC_SHARD_H_

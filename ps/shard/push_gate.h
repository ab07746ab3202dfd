#ifndef PARASOL_PS_SHARD_PUSH_GATE_H_
#define PARASOL_PS_SHARD_PUSH_GATE_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ps/operation/operation.h"
#include "ps/shard/dedup_window.h"

namespace parasol {

// Entrance of a shard: lets each push of asynchronous training in once, and
// none while the shard must not change. Thread-safe.
class PushGate {
 public:
  explicit PushGate(const DedupWindows& applied);

  // Runs `apply`, a push of asynchronous training, if the worker's sequence is
  // new; the result is a duplicate if it is not. A sequence whose `apply` fails
  // may come again. `acknowledged`: the sequence up to which the worker's
  // pushes were acknowledged. The first result for each worker says how many of
  // them the shard lacks.
  //   InvalidArgument  as DedupIndex::Mark().
  //   Unavailable      another thread is applying the push right now; or the
  //                    gate is sealed, or stays.
  // and the errors of `apply`.
  absl::StatusOr<OperationResult> ApplyOnce(
      uint64_t worker_incarnation, uint64_t sequence, uint64_t acknowledged,
      absl::FunctionRef<absl::StatusOr<UpdateBounds>()> apply)
      ABSL_LOCKS_EXCLUDED(mu_, dedup_mu_);
  // Runs `enter` beside pushes, never during WithoutPushes().
  void Enter(absl::FunctionRef<void()> enter) ABSL_LOCKS_EXCLUDED(mu_);

  // Runs `alone` when no push is being applied, and lets none in meanwhile.
  // With `stays` ApplyOnce() refuses from then on, until GoOn().
  void WithoutPushes(absl::FunctionRef<void()> alone, bool stays = false)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the sequences that have been applied. Call it in WithoutPushes().
  DedupWindows Windows() const ABSL_LOCKS_EXCLUDED(dedup_mu_);
  bool stays() const ABSL_LOCKS_EXCLUDED(mu_);
  void GoOn() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns when no push is being applied; ApplyOnce() refuses for good.
  void Seal() ABSL_LOCKS_EXCLUDED(mu_);

  // Number of pushes that ApplyOnce() has applied.
  int64_t applied() const { return applied_.load(std::memory_order_acquire); }

 private:
  // Held shared while a push is claimed and being applied, exclusively while
  // there must be none. Taken before dedup_mu_ and before a chunk's or table's
  // lock.
  mutable absl::Mutex mu_;
  bool is_sealed_ ABSL_GUARDED_BY(mu_) = false;
  bool stays_ ABSL_GUARDED_BY(mu_) = false;
  std::atomic<int64_t> applied_ = 0;
  mutable absl::Mutex dedup_mu_ ABSL_ACQUIRED_AFTER(mu_);
  DedupIndex dedup_ ABSL_GUARDED_BY(dedup_mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_PUSH_GATE_H_

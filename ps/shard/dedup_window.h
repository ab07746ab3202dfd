#ifndef PARASOL_PS_SHARD_DEDUP_WINDOW_H_
#define PARASOL_PS_SHARD_DEDUP_WINDOW_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/rpc/protocol_limits.h"

namespace parasol {

enum class Claim {
  kNew,        // new: apply it
  kDuplicate,  // already applied
  kUnderWay,   // being applied, which may yet fail
};

// The sequences of one worker that a shard has applied: all up to a floor, and
// any of the kDedupWindow sequences above it.
//
// A sequence further ahead moves the floor up to kDedupWindow below itself. Its
// sender has nothing older in flight (proto/parameter.proto): the skipped
// sequences have been acknowledged, by a lost process that had this shard. So
// of what a worker sends only the first sequence after the shard was loaded may
// be IsJump(); of what is replayed any may be.
class DedupWindow {
 public:
  // Returns true if `sequence` is more than kDedupWindow ahead of the newest
  // one that has been marked. A sender never gets that far ahead of what this
  // window has: sequences have no gaps.
  bool IsJump(uint64_t sequence) const;
  // Marks `sequence` (from 1) as applied and returns kNew, or kDuplicate if it
  // had been applied.
  Claim Mark(uint64_t sequence);
  // Takes the mark of `sequence` back, because it has not been applied after
  // all. `sequence` must be one of the newest kDedupWindow.
  void Unmark(uint64_t sequence);

  // Returns the number of sequences from 1 to `last` that are not marked, as
  // far as the window knows: of those that a jump has passed over it does not.
  uint64_t Lacks(uint64_t last) const;
  // Marks all sequences from 1 to `last`.
  void MarkUpTo(uint64_t last);

  // Returns opaque bytes: version, floor, bits; each little-endian.
  std::string Serialize() const;
  //   DataLoss  `bytes` are not a result of Serialize().
  static absl::StatusOr<DedupWindow> Parse(absl::string_view bytes);

  friend bool operator==(const DedupWindow&, const DedupWindow&) = default;

 private:
  uint64_t floor_ = 0;
  // Bit i is set if floor_ + 1 + i has been applied. Bit 0 is never set: it
  // would be part of the floor.
  std::bitset<kDedupWindow> beyond_;
};

// The window of each worker; the key is the worker's incarnation.
using DedupWindows = std::map<uint64_t, DedupWindow>;

// The windows of the workers that push to one shard. At most `max_workers` are
// kept: one more replaces the worker whose last push is the longest ago. That
// worker's resent pushes would be applied again.
class DedupIndex {
 public:
  static constexpr size_t kMaxWorkers = 4096;
  // A bit of `acknowledged` of a push of a journal or of a standby's stream,
  // beside what the record says. It may be a jump: behind a loss the journal
  // has what came then.
  static constexpr uint64_t kReplayed = uint64_t{1} << 63;

  explicit DedupIndex(size_t max_workers = kMaxWorkers)
      : max_workers_(max_workers) {}

  // Claims `sequence` for the caller. `acknowledged`: the sequence up to which
  // the worker's pushes were acknowledged, 0 if it is not known. What a
  // replayed push says was acknowledged is marked and does not count as lost:
  // the process that took the push has counted it. A claim that is kNew is
  // under way until Confirm(), or until Unmark() if the push has not been
  // applied after all.
  //   InvalidArgument  incarnation or sequence is 0, or the sequence is a jump
  //                    and not the worker's first one here; nothing has
  //                    changed.
  absl::StatusOr<Claim> Mark(uint64_t incarnation, uint64_t sequence,
                             uint64_t acknowledged = 0);
  // Returns how many of the acknowledged pushes were not marked at the worker's
  // first claim after the shard was loaded, replayed ones aside; from then on
  // 0.
  uint64_t TakeLost(uint64_t incarnation);
  void Confirm(uint64_t incarnation, uint64_t sequence);
  void Unmark(uint64_t incarnation, uint64_t sequence);

  // Returns all windows. Call it while no claim is under way.
  DedupWindows Windows() const;
  // Adds the windows of workers that have not pushed since the shard was
  // loaded.
  void Restore(const DedupWindows& windows);

 private:
  struct Worker {
    DedupWindow window;
    uint64_t last_claim = 0;
    // True if it has claimed a sequence since the shard was loaded: a replayed
    // push is no claim of the worker's.
    bool has_come = false;
    // Number that TakeLost() returns.
    uint64_t lost = 0;
  };

  void ForgetIdlest();

  const size_t max_workers_;
  // True if a worker was replaced: of one that is not known now nothing is
  // known to be lost.
  bool has_forgotten_ = false;
  uint64_t claims_ = 0;  // a logical clock
  std::map<uint64_t, Worker> workers_;
  // The (incarnation, sequence) of each claim under way; at most one per thread
  // that pushes.
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> under_way_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_DEDUP_WINDOW_H_

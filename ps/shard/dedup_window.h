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
#include "cluster/rpc/chunk.h"

namespace parasol {

enum class Claim {
  kNew,        // apply it
  kDuplicate,  // it has been applied
  kUnderWay,   // it is being applied, which may yet fail
};

// Which sequences of one worker a shard has applied: all up to a floor, and any
// of the kDedupWindow beyond it.
//
// A sequence further ahead moves the floor up to kDedupWindow below itself: its
// sender has nothing older in flight (proto/parameter.proto), so what is
// skipped has been acknowledged, by this shard's lost predecessor perhaps.
class DedupWindow {
 public:
  // Marks `sequence` (from 1) as applied and says whether it had been.
  Claim Mark(uint64_t sequence);
  // It has not been applied after all; it was one of the newest kDedupWindow.
  void Unmark(uint64_t sequence);

  // Opaque bytes: version, floor, bits; each little-endian.
  std::string Serialize() const;
  //   DataLoss  not what Serialize() gives.
  static absl::StatusOr<DedupWindow> Parse(absl::string_view bytes);

  friend bool operator==(const DedupWindow&, const DedupWindow&) = default;

 private:
  uint64_t floor_ = 0;
  // Bit i: floor_ + 1 + i has been applied. Bit 0 is never set: it would be
  // part of the floor.
  std::bitset<kDedupWindow> beyond_;
};

// By worker incarnation.
using DedupWindows = std::map<uint64_t, DedupWindow>;

// The windows of the workers that push to one shard. It remembers
// `max_workers`: one more makes it forget the one whose last push is the
// longest ago, whose resends would be applied again.
class DedupIndex {
 public:
  static constexpr size_t kMaxWorkers = 4096;

  explicit DedupIndex(size_t max_workers = kMaxWorkers)
      : max_workers_(max_workers) {}

  // A claim that is kNew is under way until it is confirmed, or taken back when
  // it has not been applied after all.
  //   InvalidArgument  incarnation or sequence is 0.
  absl::StatusOr<Claim> Mark(uint64_t incarnation, uint64_t sequence);
  void Confirm(uint64_t incarnation, uint64_t sequence);
  void Unmark(uint64_t incarnation, uint64_t sequence);

  // While no claim is under way.
  DedupWindows Windows() const;
  // Adds `windows`, as of workers that have not pushed since.
  void Restore(const DedupWindows& windows);

 private:
  struct Worker {
    DedupWindow window;
    uint64_t last_claim = 0;
  };

  // The window of `incarnation`, which has just pushed.
  DedupWindow& Touch(uint64_t incarnation);
  void ForgetIdlest();

  const size_t max_workers_;
  uint64_t claims_ = 0;  // a logical clock
  std::map<uint64_t, Worker> workers_;
  // By incarnation and sequence; as many as threads push.
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> under_way_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_DEDUP_WINDOW_H_

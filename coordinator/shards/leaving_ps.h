#ifndef PARASOL_COORDINATOR_SHARDS_LEAVING_PS_H_
#define PARASOL_COORDINATOR_SHARDS_LEAVING_PS_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/time/time.h"

namespace parasol {

// Time that the checkpoint of a leaving ps waits for other tasks that are told
// to end with it, and for workers to report the acknowledged steps.
inline constexpr absl::Duration kLeaveDelay = absl::Milliseconds(200);
// Longest time that training waits to begin for a ps that is told to end to
// have gone.
inline constexpr absl::Duration kDepartureLimit = absl::Seconds(1);

// Two things: the ps that were told to end and wait for a checkpoint that has
// their updates; and the stay: with the last checkpoint before a ps leaves all
// shards stay, that is, they take no update behind it. Pure. A ps is identified
// by its incarnation.
class LeavingPs {
 public:
  // Notes that a ps asks for a checkpoint. It asks with each heartbeat. Returns
  // true if it asks for the first time and needs a checkpoint, which a ps that
  // stays does not.
  bool Ask(uint64_t incarnation, absl::Time now);
  // Forgets a ps that has gone.
  void Forget(uint64_t incarnation) { waiting_.erase(incarnation); }

  // Returns true if a ps has asked for a checkpoint, and has not gone.
  bool IsAnyLeaving() const { return !waiting_.empty(); }
  // Returns true if a ps has asked for a checkpoint and none has been ordered
  // since.
  bool NeedCheckpoint() const;
  // Returns true if that was kLeaveDelay ago.
  bool IsCheckpointDue(absl::Time now) const {
    return NeedCheckpoint() && now - asked_at_ >= kLeaveDelay;
  }
  // Returns true if a ps is about to go that was told to end before it had
  // updates to lose: if training began now, it would lack that ps.
  bool IsAnyGoing(absl::Time now) const {
    return IsAnyLeaving() && now - asked_at_ < kDepartureLimit;
  }

  // Notes that a checkpoint is ordered, and its end.
  void Ordered();
  void Done(bool is_written);
  // Notes that a checkpoint is written with which the shards on `incarnations`
  // stay: it has their updates, whenever these ps ask.
  void Stay(const std::vector<uint64_t>& incarnations);
  // Notes that the shards are to go on.
  void EndStay() { staying_.clear(); }
  bool IsStay() const { return !staying_.empty(); }

  // Returns true if a checkpoint that was ordered after the ps asked for it has
  // been written.
  bool MayLeave(uint64_t incarnation) const;

 private:
  enum class Wait { kAsked, kOrdered, kWritten };

  std::map<uint64_t, Wait> waiting_;
  // The time when the last ps has asked for the first time.
  absl::Time asked_at_ = absl::InfinitePast();
  std::set<uint64_t> staying_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_SHARDS_LEAVING_PS_H_

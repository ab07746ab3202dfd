#ifndef PARASOL_CHIEF_SHARDS_LEAVING_PS_H_
#define PARASOL_CHIEF_SHARDS_LEAVING_PS_H_

#include <cstdint>
#include <map>

namespace parasol {

// The ps that were told to end and wait for a checkpoint that has their
// updates. Pure. A ps is identified by its incarnation.
class LeavingPs {
 public:
  // Notes that a ps asks for a checkpoint. It asks with each heartbeat. Returns
  // true if it is its first.
  bool Ask(uint64_t incarnation) {
    return waiting_.try_emplace(incarnation).second;
  }
  // Forgets a ps that has gone.
  void Forget(uint64_t incarnation) { waiting_.erase(incarnation); }

  // Returns true if a ps has asked for a checkpoint, and has not gone.
  bool IsAnyLeaving() const { return !waiting_.empty(); }
  // Returns true if a ps has asked for a checkpoint and none has been ordered
  // since.
  bool NeedCheckpoint() const;

  // Notes that a checkpoint is ordered, and its end.
  void Ordered();
  void Done(bool is_written);
  // Notes that a checkpoint is written with which all shards stay: it has the
  // updates of those, too, that have asked since it was ordered.
  void AllWritten();

  // Returns true if a checkpoint that was ordered after the ps asked for it has
  // been written.
  bool MayLeave(uint64_t incarnation) const;

 private:
  enum class Wait { kAsked, kOrdered, kWritten };

  std::map<uint64_t, Wait> waiting_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_SHARDS_LEAVING_PS_H_

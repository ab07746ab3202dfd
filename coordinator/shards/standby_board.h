#ifndef PARASOL_COORDINATOR_SHARDS_STANDBY_BOARD_H_
#define PARASOL_COORDINATOR_SHARDS_STANDBY_BOARD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "proto/chief.pb.h"

namespace parasol {

// The standbys of a job that replicates: which one has all acknowledged pushes
// of each ps's shard (docs/design/standby.md). Pure.
//
// A ps relies on a standby, or does without, only when it has been answered
// that the chief has kept it; and it is answered only when that is recorded
// durably. So a number is decided first (wanted), then recorded, then told.
class StandbyBoard {
 public:
  // The number of the standby that has all acknowledged pushes of a ps's shard.
  // kSaved: the newest checkpoint has them. kAlone: neither has.
  static constexpr uint64_t kSaved = 0;
  static constexpr uint64_t kAlone = UINT64_MAX;
  using Kept = std::map<int, uint64_t>;

  // `places`: the indices of the ps, ascending; none: the job does not
  // replicate. `recorded`: what an earlier chief has recorded.
  StandbyBoard(std::vector<int> places, const Kept& recorded);

  bool is_used() const { return !wanted_.empty(); }
  // The ps that has the standby of a ps's shard: the next one.
  int HostOf(int ps_index) const;
  // Returns the number for a ps's shard, whether or not it is recorded already:
  // whoever takes the ps's place goes on from there.
  uint64_t KeptFor(int ps_index) const;

  // Notes the report of the process that has the shard of this place.
  void Hear(int ps_index, const wire::StandbyReport& report);
  // Returns the number that the process is to be told, in answer to the report;
  // 0: it is alone. nullopt: nothing is recorded that fits.
  std::optional<uint64_t> AnswerTo(int ps_index,
                                   const wire::StandbyReport& report) const;

  // Notes that the newest checkpoint has all pushes, and that the shards take
  // no more until they are loaded again.
  void Saved();
  // Notes that shards are about to be loaded, and go on.
  void GoOn() { is_saved_ = false; }

  // Returns what is to be recorded; nullopt: it is.
  std::optional<Kept> ToRecord() const;
  void Recorded(const Kept& kept) { recorded_ = kept; }

 private:
  Kept wanted_;
  Kept recorded_;
  // Standbys that were given up: a report of one has come late.
  std::map<int, std::set<uint64_t>> given_up_;
  bool is_saved_ = false;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_SHARDS_STANDBY_BOARD_H_

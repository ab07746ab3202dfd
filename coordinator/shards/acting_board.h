#ifndef PARASOL_COORDINATOR_SHARDS_ACTING_BOARD_H_
#define PARASOL_COORDINATOR_SHARDS_ACTING_BOARD_H_

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/time/time.h"

namespace parasol {

// The places of ps at which another ps acts for a lost one, in its own process
// and from the standby that it has (docs/design/standby.md). Pure.
//
// A process that acts has the only copy of its shard. So whoever comes to the
// place waits until it has handed over, or is known to be gone.
class ActingBoard {
 public:
  // The host's index, by the index of the ps that it acts for.
  using Hosts = std::map<int, int>;

  // Time after which a comer that is not heard is there no more: it registers
  // every .2 s.
  static constexpr absl::Duration kComerPatience = absl::Seconds(3);

  // `recorded`: those that an earlier chief has recorded, which have yet to be
  // heard.
  explicit ActingBoard(const Hosts& recorded);

  // Notes that a process has registered at a place: one that acts, in the
  // process of `host`, or (nullopt) one of its own.
  void Entered(int ps_index, std::optional<int> host);
  // Notes that the process that acts has left in good order.
  void Left(int ps_index);
  // Forgets those in a process of `host` that is gone. Returns their places.
  std::vector<int> HostIsGone(int host);

  // Returns who acts at a place, or did when it was lost; nullopt: nobody, or
  // one that has left.
  std::optional<int> HostAt(int ps_index) const;
  // Returns true if the last process at the place acted, and has left.
  bool HasLeft(int ps_index) const;
  // Returns true if the last process at the place acted, whatever has become of
  // it: one of before that is heard again has been replaced.
  bool WasActedFor(int ps_index) const { return acted_.contains(ps_index); }
  // Returns what is to be recorded.
  Hosts hosts() const;

  // Notes that a process of its own waits for the place.
  void NoteComer(int ps_index, absl::Time now);
  // Returns true if one waits.
  bool HasComer(int ps_index, absl::Time now) const;

  // Notes that nobody is at a place: a process that was there is gone for sure.
  void NoteNobody(int ps_index) { nobody_.insert(ps_index); }
  bool IsNobody(int ps_index) const { return nobody_.contains(ps_index); }

 private:
  struct Acting {
    int host = 0;
    bool has_left = false;
    absl::Time comer_at = absl::InfinitePast();
  };

  const Acting* Find(int ps_index) const;

  std::map<int, Acting> acting_;
  std::set<int> acted_;
  std::set<int> nobody_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_SHARDS_ACTING_BOARD_H_

#ifndef PARASOL_COORDINATOR_MEMBERSHIP_H_
#define PARASOL_COORDINATOR_MEMBERSHIP_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/task_id.h"
#include "proto/chief.pb.h"

namespace parasol {

// The processes that hold the places in the cluster, and the times at which
// their leases end. Pure: time is an argument.
//
// Each process is given a place epoch when it first registers, larger than the
// epoch of every process that was at its place before, and presents it when it
// registers again, also with another chief. The process with the largest epoch
// holds the place, in whatever order they come; older ones are refused for
// good. A chief gives larger epochs than every earlier chief, so that it need
// not know theirs. (The last kMaxReplaced incarnations are remembered, too: a
// process whose first answer was lost has no epoch to present.)
//
// A registration may come late, from a process that is dead by then, or from
// one that stood still before it could register. So a process that began to
// join before the holder of its place waits until the holder has left, or has
// been lost for kPrecedence leases. And a newcomer that takes the place of a
// live process holds it for good only with its next message. Until then its
// predecessor is put off. If the newcomer's lease ends without another message
// and the predecessor was heard meanwhile, the predecessor has the place again,
// unless it began to join before the newcomer. A process that an earlier chief
// knew takes the place of a process that is new to this chief, but began to
// join before it. Which of two processes began first is known whatever was done
// to clocks if both run on one machine; else their clocks decide it, and
// nothing more.
class Membership {
 public:
  static constexpr size_t kMaxReplaced = 64;
  static constexpr int kPrecedence = 2;
  // A process that says that it began to join later than this from now has a
  // wrong clock: the time counts as unknown.
  static constexpr absl::Duration kMaxClockError = absl::Minutes(1);

  struct Options {
    std::vector<TaskId> places;
    absl::Duration lease;
    // Number of this chief, from 1 to 2^30; larger than every earlier chief's.
    int64_t chief_epoch = 1;
    // The newest place epochs that an earlier chief has recorded.
    std::map<TaskId, int64_t> newest_epochs = {};
  };

  // A process that has held a place.
  struct Former {
    uint64_t incarnation = 0;
    std::string process;
    // True if it acted for a lost process, or one that acts took its place:
    // both were meant to be.
    bool is_of_acting = false;
  };

  // The time at which a process began to join.
  struct JoinTime {
    // NOLINTNEXTLINE(google-explicit-constructor)
    JoinTime(absl::Time on_clock = absl::InfinitePast()) : clock(on_clock) {}
    JoinTime(absl::Time on_clock, std::string of_machine, int64_t since)
        : clock(on_clock), boot_id(std::move(of_machine)), boot_micros(since) {}

    // Returns true if this time is known to be before `other`.
    bool IsBefore(const JoinTime& other) const;

    absl::Time clock;  // the process's own; InfinitePast if unknown
    // The start of the process's machine, which BootId() names, and the time
    // since then. Empty and 0 if unknown.
    std::string boot_id;
    int64_t boot_micros = 0;
  };

  struct Member {
    // The process that holds the place; 0 if none has held it yet.
    uint64_t incarnation = 0;
    // The largest known place epoch: the process `incarnation` has it, if there
    // is one.
    int64_t epoch = 0;
    bool alive = false;
    // True if its lease ran out: the process may be gone, or stand still and
    // return.
    bool lost = false;
    absl::Time lease_end;
    // The start, the loss or the leave since which it is absent. Meaningful
    // while not alive.
    absl::Time absent_since;
    std::string metrics_address;
    // Address of a worker for its peers.
    std::string collective_address;
    // Name of the process for people.
    std::string process;
    JoinTime joined_at;
    std::deque<Former> replaced;
    // Names the process at the place and an older one that was heard after it:
    // both ran at a time, or the older one stood still. Empty if none was
    // heard, or one of them acted for a lost process.
    std::string doubled;
    // True if the process acts for a lost one, in another ps's.
    bool acts = false;
    // The live process whose place a newcomer has taken, while the newcomer has
    // not been heard again, and its place epoch; 0 if there is none.
    uint64_t predecessor = 0;
    std::string predecessor_process;
    bool predecessor_acts = false;
    int64_t predecessor_epoch = 0;
    // The predecessor may have the place again if it was heard since, and is
    // not known to have begun to join before the newcomer.
    bool predecessor_is_heard = false;
    JoinTime predecessor_joined_at;
  };

  // A process's own description when it registers.
  struct Arrival {
    static Arrival Of(const wire::RegisterRequest& request);

    // The place epoch that it has been given before, by this chief or an
    // earlier one; 0 if none.
    int64_t epoch = 0;
    JoinTime joined_at = {};
    std::string metrics_address = {};
    std::string collective_address = {};
    std::string process = {};
    // True if it acts for a lost process, in another ps's.
    bool acts = false;
  };

  struct Registration {
    // The incarnation that had the place until now; it may have been lost
    // before.
    std::optional<uint64_t> replaced;
    // True if `replaced` was alive.
    bool replaced_was_alive = false;
    // The process's place epoch.
    int64_t epoch = 0;
  };

  struct Lost {
    TaskId id;
    uint64_t incarnation = 0;
  };

  Membership(const Options& options, absl::Time now);

  // Starts or renews a lease.
  //   InvalidArgument     there is no such place, no incarnation is given, or
  //                       no chief gives such an epoch.
  //   FailedPrecondition  a newer process has taken the place.
  //   Unavailable         the epoch comes from a newer chief: this one has been
  //                       replaced. Or another process has registered, and is
  //                       yet to be heard again. Or a process that began to
  //                       join later has the place.
  absl::StatusOr<Registration> Register(const wire::Task& task,
                                        const Arrival& presented,
                                        absl::Time now);

  //   NotFound            the incarnation is not alive here and has to
  //                       register.
  //   InvalidArgument, FailedPrecondition, Unavailable  as for Register.
  absl::Status Renew(const wire::Task& task, absl::Time now);

  // Ends the lease, also one that has run out: a process that stood still and
  // then leaves is waited for no more. Returns true if it had not run out.
  // Fails as Renew() does.
  absl::StatusOr<bool> Leave(const wire::Task& task, absl::Time now);

  // Ends the leases that have run out by `now`, and returns their tasks. The
  // place of a newcomer that was not heard again is its predecessor's, who may
  // register again.
  std::vector<Lost> Expire(absl::Time now);

  // Ends the lease of the process at a place, as if it had run out: it is known
  // to be gone. Returns it; nullopt: it is not alive here.
  std::optional<Lost> Lose(const TaskId& id, absl::Time now);

  // Extends every lease by `time`.
  void Extend(absl::Duration time);

  const std::map<TaskId, Member>& members() const { return members_; }
  // Returns true if the process has the place, alive or lost.
  bool IsAt(const TaskId& id, uint64_t incarnation) const {
    const auto member = members_.find(id);
    return member != members_.end() && incarnation != 0 &&
           member->second.incarnation == incarnation;
  }
  // Returns true if no live predecessor of the process at the place may have it
  // again.
  bool IsSettled(const TaskId& id) const {
    return members_.at(id).predecessor == 0;
  }
  // Returns true if the chief has heard some task within every lease for a
  // lease at least: whoever is silent is not only cut off from it with all
  // others.
  bool IsReached(absl::Time now) const {
    return now - reached_since_ >= lease_;
  }
  // Returns the members that have neither left nor been replaced, alive or
  // lost, in order.
  std::vector<TaskId> Staying() const;
  // Takes no time that grows with the number of members.
  int CountAlive(absl::string_view role) const;
  // The tasks of `role` that are not alive, in order.
  std::vector<TaskId> Absent(absl::string_view role) const;

 private:
  // Fails as Renew() does, but never with NotFound.
  absl::StatusOr<Member*> Find(const wire::Task& task);
  // Returns the place epoch of a process that registers as `task`. Fails as
  // Register() does.
  absl::StatusOr<int64_t> EpochOf(const wire::Task& task, const Member& member,
                                  const Arrival& arrival) const;
  // Returns true if the member has its place before a process that began to
  // join earlier.
  bool HasPrecedence(const Member& member, const Arrival& arrival,
                     absl::Time now) const;
  void SetAlive(const TaskId& id, Member& member, bool alive);
  // Ends a lease, and gives the place to the predecessor who is to have it.
  Lost End(const TaskId& id, Member& member, absl::Time now);
  // Refuses `former` at this place from now on.
  static void Replace(Member& member, Former former);

  // Notes that some task is heard.
  void Hear(absl::Time now);

  const absl::Duration lease_;
  const int64_t chief_epoch_;
  // The time at which a task was last heard, and the time since which the chief
  // has heard some task within every lease: before, the chief may have been cut
  // off.
  absl::Time heard_at_;
  absl::Time reached_since_;
  std::map<TaskId, Member> members_;
  std::map<std::string, int, std::less<>> alive_;  // key: role
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_MEMBERSHIP_H_

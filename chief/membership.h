#ifndef PARASOL_CHIEF_MEMBERSHIP_H_
#define PARASOL_CHIEF_MEMBERSHIP_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/task_id.h"
#include "proto/chief.pb.h"

namespace parasol {

// The processes that hold the places in the cluster, and the times at which
// their leases end. Pure: time is an argument.
//
// The incarnation that registers last holds the place. Earlier ones are refused
// for good (the last kMaxReplaced of them are remembered).
class Membership {
 public:
  static constexpr size_t kMaxReplaced = 64;

  struct Member {
    // The process that holds the place; 0 if none has held it yet.
    uint64_t incarnation = 0;
    bool alive = false;
    // True if its lease ran out: the process may be gone, or stand still and
    // return.
    bool lost = false;
    absl::Time lease_end;
    // The start, the loss or the leave since which it is absent. Meaningful
    // while not alive.
    absl::Time absent_since;
    std::string metrics_address;
    std::deque<uint64_t> replaced;
  };

  struct Registration {
    // True if the incarnation was alive already: the call is a resend.
    bool is_resend = false;
    // The incarnation whose place this one takes; it may have been lost before.
    std::optional<uint64_t> replaced;
  };

  struct Lost {
    TaskId id;
    uint64_t incarnation = 0;
  };

  Membership(const std::vector<TaskId>& places, absl::Duration lease,
             absl::Time now);

  // Starts or renews a lease.
  //   InvalidArgument     there is no such place, or no incarnation is given.
  //   FailedPrecondition  a newer incarnation has taken the place.
  absl::StatusOr<Registration> Register(const wire::Task& task,
                                        absl::string_view metrics_address,
                                        absl::Time now);

  //   NotFound            the incarnation is not alive here and has to
  //                       register.
  //   InvalidArgument, FailedPrecondition  as for Register.
  absl::Status Renew(const wire::Task& task, absl::Time now);

  // Ends the lease. Errors are those of Renew().
  absl::Status Leave(const wire::Task& task, absl::Time now);

  // Ends the leases that have run out by `now`, and returns their tasks.
  std::vector<Lost> Expire(absl::Time now);

  // Extends every lease by `time`.
  void Extend(absl::Duration time);

  const std::map<TaskId, Member>& members() const { return members_; }
  // Number of members that have neither left nor been replaced: alive or lost.
  int CountStaying() const;
  // Takes no time that grows with the number of members.
  int CountAlive(absl::string_view role) const;
  // The tasks of `role` that are not alive, in order.
  std::vector<TaskId> Absent(absl::string_view role) const;

 private:
  absl::StatusOr<Member*> Find(const wire::Task& task);
  void SetAlive(const TaskId& id, Member& member, bool alive);

  const absl::Duration lease_;
  std::map<TaskId, Member> members_;
  std::map<std::string, int, std::less<>> alive_;  // key: role
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_MEMBERSHIP_H_

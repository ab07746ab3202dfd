#ifndef PARASOL_CHIEF_MEMBERSHIP_H_
#define PARASOL_CHIEF_MEMBERSHIP_H_

#include <cstdint>
#include <deque>
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

// Which process holds each place in the cluster, and until when its lease
// lasts. Pure: time is an argument.
//
// The incarnation that registers last holds the place; the ones before it are
// refused for good (the last kMaxReplaced of them are remembered).
class Membership {
 public:
  static constexpr size_t kMaxReplaced = 64;

  struct Member {
    // 0: nobody has held the place yet.
    uint64_t incarnation = 0;
    bool alive = false;
    // Its lease ran out: the process may be gone, or stand still and return.
    bool lost = false;
    absl::Time lease_end;
    // Meaningful while not alive: since the start, the loss or the leave.
    absl::Time absent_since;
    std::string metrics_address;
    std::deque<uint64_t> replaced;
  };

  struct Registration {
    // The incarnation was alive already: a resend.
    bool is_resend = false;
    // Whose place this one takes; it may have been lost before.
    std::optional<uint64_t> replaced;
  };

  struct Lost {
    TaskId id;
    uint64_t incarnation = 0;
  };

  Membership(const std::vector<TaskId>& places, absl::Duration lease,
             absl::Time now);

  // Starts or renews a lease.
  //   InvalidArgument     no such place, or no incarnation.
  //   FailedPrecondition  a newer incarnation has taken the place.
  absl::StatusOr<Registration> Register(const wire::Task& task,
                                        absl::string_view metrics_address,
                                        absl::Time now);

  //   NotFound            not alive here: it has to register.
  //   InvalidArgument, FailedPrecondition  as for Register.
  absl::Status Renew(const wire::Task& task, absl::Time now);

  // Ends the lease. Codes as for Renew.
  absl::Status Leave(const wire::Task& task, absl::Time now);

  // Ends the leases that have run out by `now`, and says whose.
  std::vector<Lost> Expire(absl::Time now);

  // Gives every lease so much more time.
  void Extend(absl::Duration time);

  const std::map<TaskId, Member>& members() const { return members_; }
  // Those who have neither left nor been replaced: alive or lost.
  int CountStaying() const;
  int CountAlive(absl::string_view role) const;
  // Those of a role that are not alive, in order.
  std::vector<TaskId> Absent(absl::string_view role) const;

 private:
  absl::StatusOr<Member*> Find(const wire::Task& task);

  const absl::Duration lease_;
  std::map<TaskId, Member> members_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_MEMBERSHIP_H_

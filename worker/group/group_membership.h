#ifndef PARASOL_WORKER_GROUP_GROUP_MEMBERSHIP_H_
#define PARASOL_WORKER_GROUP_GROUP_MEMBERSHIP_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/chief.pb.h"
#include "worker/group/step_group.h"

namespace parasol {

// A worker's knowledge of the groups that the chief calls it to: which one is
// the newest, which ones are over, and how the last one has ended. Pure: the
// caller has the lock, the thread and the time.
class GroupMembership {
 public:
  // Number of groups that end with InvalidArgument in a row, without a step
  // between them, until the next one will, too. A rank that was confused by a
  // loss is not so again.
  static constexpr int kInvalidEnds = 5;

  // `incarnation` is the worker's. `finish_limit`: longest time for which a
  // worker that was told to stop goes on with a step.
  GroupMembership(uint64_t incarnation, absl::Duration finish_limit)
      : incarnation_(incarnation), finish_limit_(finish_limit) {}

  // Takes the chief's answer to a claim. Returns false if it names an older
  // group than the newest one.
  bool Hear(const wire::ClaimStepsResponse& answer);
  // Returns the version of the newest group that the chief has named.
  int64_t heard() const { return heard_; }
  // Returns the newest group that this worker is a member of.
  const StepGroup& group() const { return group_; }

  // Notes that the worker is told to stop. The first time counts.
  void Stop(absl::Time now) {
    stopping_since_ = std::min(stopping_since_, now);
  }
  bool is_stopping() const { return stopping_since_ < absl::InfiniteFuture(); }
  // Returns true if a worker that is told to stop waits for its step no longer:
  // at once, if its group makes none, or if its variables stay as they are.
  bool GivesUp(absl::Time now, bool stays) const;

  // Returns true if the group of this version is not to begin anything more.
  bool IsOver(int64_t version) const {
    return heard_ > version || is_stopping();
  }
  // Says whether all members of the present group have the variables.
  void SetMakesSteps(bool makes_steps);
  // Returns true if the members of a group have had the variables, once.
  bool has_agreed() const { return has_agreed_; }
  // Notes that the present group has made a step.
  void NoteStep() { last_end_ = absl::OkStatus(); }
  // Notes why a group has ended, when the variables have had `step` steps.
  // Returns true if the next one will end so, too: no other group mends it.
  bool NoteEnd(const absl::Status& why, int64_t step);

  // Notes that the chief is to be told of the end of the group.
  void Report(int64_t version) { broken_ = version; }
  // Returns the version of a group that has ended and that the chief has yet to
  // replace; 0 if there is none.
  int64_t broken() const { return broken_ == heard_ ? broken_ : 0; }

  // Returns whom a step waits for: the names of the other members, "worker/1",
  // or of this one if it is alone, the last one with why the group before has
  // ended, if no step was made since.
  std::vector<std::string> Awaited() const;

 private:
  const uint64_t incarnation_;
  const absl::Duration finish_limit_;
  StepGroup group_;
  int64_t heard_ = 0;
  int64_t broken_ = 0;
  bool makes_steps_ = false;
  bool has_agreed_ = false;
  absl::Status last_end_;  // OK: a step was made since
  absl::Time stopping_since_ = absl::InfiniteFuture();
  int invalid_ends_ = 0;      // the last ends with InvalidArgument, ...
  int64_t invalid_step_ = 0;  // ... all at this step
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_GROUP_MEMBERSHIP_H_

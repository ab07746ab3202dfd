#include "worker/group/group_membership.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol {

bool GroupMembership::Hear(const wire::ClaimStepsResponse& answer) {
  StepGroup group = GroupOf(answer, incarnation_);
  const bool is_new = group.version >= heard_;
  heard_ = std::max(heard_, group.version);
  if (group.is_member && group.version > group_.version) {
    group_ = std::move(group);
  }
  return is_new;
}

bool GroupMembership::GivesUp(absl::Time now, bool stays) const {
  const absl::Duration limit =
      makes_steps_ && !stays ? finish_limit_ : absl::ZeroDuration();
  return is_stopping() && now - stopping_since_ >= limit;
}

void GroupMembership::SetMakesSteps(bool makes_steps) {
  makes_steps_ = makes_steps;
  has_agreed_ |= makes_steps;
}

// Whoever hears of the next group first says nothing of this one.
bool GroupMembership::NoteEnd(const absl::Status& why, int64_t step) {
  if (absl::IsCancelled(why)) return false;
  last_end_ = why;
  if (!absl::IsInvalidArgument(why) || step != invalid_step_) invalid_ends_ = 0;
  invalid_step_ = step;
  if (absl::IsInvalidArgument(why)) ++invalid_ends_;
  return invalid_ends_ >= kInvalidEnds;
}

std::vector<std::string> GroupMembership::Awaited() const {
  if (group_.names.empty()) return {"the chief, for an assignment"};
  std::vector<std::string> names = group_.names;
  names.erase(names.begin() + group_.collective.own_rank);
  if (names.empty() && last_end_.ok()) {
    names.push_back("this worker itself, whose step a checkpoint may hold");
  }
  if (!last_end_.ok()) {
    if (names.empty()) names.push_back("the chief, for another group");
    absl::StrAppend(&names.back(),
                    " (the last group of workers ended: ", last_end_.message(),
                    ")");
  }
  return names;
}

}  // namespace parasol

#include "storage/owner_watch.h"

#include <unistd.h>

#include <climits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"

namespace parasol {
namespace {

constexpr int kMostChanges = 20;

// The part behind the host's name: containers of one machine have different
// names, but one kernel, and so one set of locks.
absl::string_view KernelOf(absl::string_view machine) {
  const size_t slash = machine.rfind('/');
  return slash == absl::string_view::npos ? "" : machine.substr(slash + 1);
}

}  // namespace

OwnerWatch::Verdict OwnerWatch::Look(const OwnerSight& sight, absl::Time now) {
  if (sight.lock != OwnerLock::kBusy) {
    if (sight.stamp.empty()) return Verdict::kTake;
    if (sight.owner && sight.owner->released()) return Verdict::kTake;
  }
  const absl::string_view kernel = KernelOf(machine_);
  if (sight.lock == OwnerLock::kHeld && sight.owner && !kernel.empty() &&
      KernelOf(sight.owner->host()) == kernel) {
    return Verdict::kTake;
  }
  if (!stamp_ || names_ != sight.names) {
    // Another one wants it, or does no more: that is no sign of the owner.
    if (stamp_ && ++changes_ > kMostChanges) return Verdict::kRefuse;
    stamp_ = sight.stamp;
    names_ = sight.names;
    since_ = now;
    return Verdict::kWait;
  }
  if (*stamp_ != sight.stamp) {
    const bool is_ending = sight.owner && sight.owner->released();
    if (!is_ending) return Verdict::kRefuse;
    stamp_ = sight.stamp;  // its lock will be free in a moment
    since_ = now;
  }
  return now - since_ >= lease_ ? Verdict::kTake : Verdict::kWait;
}

std::string ThisMachine() {
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, HOST_NAME_MAX) != 0) name[0] = '\0';
  return absl::StrCat(name, "/", BootId());
}

std::string HostOf(const durable::DirectoryOwner& owner) {
  return owner.host().substr(0, owner.host().rfind('/'));
}

}  // namespace parasol

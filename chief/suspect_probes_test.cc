#include "chief/suspect_probes.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

SuspectProbes::Suspect Ps(int index, uint64_t incarnation = 7) {
  return {index, incarnation, index == 9 ? "alive" : "gone"};
}

// The suspects that were found to be gone, as "ps index/incarnation".
class Found {
 public:
  void Add(const SuspectProbes::Suspect& suspect) {
    absl::MutexLock lock(&mu_);
    found_.push_back(absl::StrCat(suspect.ps_index, "/", suspect.incarnation));
  }
  std::vector<std::string> Await(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return found_.size() >= count;
    };
    mu_.Await(absl::Condition(&are_there));
    return found_;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> found_ ABSL_GUARDED_BY(mu_);
};

TEST(SuspectProbesTest, ThoseAreToldWhoAreGone) {
  Found found;
  SuspectProbes probes(
      [](const std::string& address) { return address == "gone"; },
      [&found](const auto& suspect) { found.Add(suspect); });
  probes.Add({Ps(1), Ps(9), Ps(2)});
  EXPECT_THAT(found.Await(2), ElementsAre("1/7", "2/7"));
}

TEST(SuspectProbesTest, WhoeverAddsDoesNotWaitAndOneOfEachPsDoes) {
  Found found;
  absl::Notification looks;
  absl::Notification goes_on;
  SuspectProbes probes(
      [&](const std::string&) {
        if (!looks.HasBeenNotified()) looks.Notify();
        goes_on.WaitForNotification();
        return true;
      },
      [&found](const auto& suspect) { found.Add(suspect); });
  probes.Add({Ps(1)});
  looks.WaitForNotification();
  for (uint64_t incarnation = 0; incarnation < 100; ++incarnation) {
    probes.Add({Ps(2, incarnation), Ps(3, incarnation)});
  }
  goes_on.Notify();
  // The newest process of each.
  EXPECT_THAT(found.Await(3), ElementsAre("1/7", "2/99", "3/99"));
}

}  // namespace
}  // namespace parasol

#include "base/work_helpers.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Each;

std::vector<int> CallsOf(WorkHelpers& helpers, size_t parts) {
  std::vector<std::atomic<int>> calls(parts);
  helpers.ForEach(parts, [&](size_t i) { ++calls[i]; });
  return {calls.begin(), calls.end()};
}

TEST(WorkHelpersTest, EachPartIsDoneOnce) {
  for (const size_t threads : {0, 1, 3}) {
    WorkHelpers helpers(threads);
    for (const size_t parts : {0, 1, 2, 7, 1000}) {
      EXPECT_THAT(CallsOf(helpers, parts), Each(1));
    }
  }
}

TEST(WorkHelpersTest, ManyCallersAtOnce) {
  WorkHelpers helpers(2);
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        for (const int calls : CallsOf(helpers, 16)) wrong += calls != 1;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// The first part ends only when the second one has begun: on another thread.
TEST(WorkHelpersTest, AHelperTakesAPart) {
  WorkHelpers helpers(1);
  absl::Notification begun[2];
  absl::Mutex mu;
  std::set<std::thread::id> threads;
  helpers.ForEach(2, [&](size_t i) {
    {
      absl::MutexLock lock(&mu);
      threads.insert(std::this_thread::get_id());
    }
    begun[i].Notify();
    begun[1 - i].WaitForNotification();
  });
  EXPECT_EQ(threads.size(), 2u);
}

// The only helper is held in another caller's part.
TEST(WorkHelpersTest, ACallerDoesNotWaitForAHelperThatIsAtWork) {
  WorkHelpers helpers(1);
  absl::Notification is_held, go_on;
  std::thread other([&] {
    std::atomic<int> begun = 0;
    helpers.ForEach(2, [&](size_t) {
      if (++begun == 2) is_held.Notify();
      go_on.WaitForNotification();
    });
  });
  is_held.WaitForNotification();
  EXPECT_THAT(CallsOf(helpers, 100), Each(1));
  go_on.Notify();
  other.join();
}

// The aside ends only when the part has begun: on another thread.
TEST(WorkHelpersTest, AnAsideIsDoneOnceBesideTheParts) {
  WorkHelpers helpers(1);
  absl::Notification aside_begun, part_begun;
  int asides = 0;
  {
    const auto count = [&] {
      ++asides;
      aside_begun.Notify();
      part_begun.WaitForNotification();
    };
    const WorkHelpers::Aside aside(count);
    helpers.ForEach(2, [&](size_t i) {
      if (i > 0) return;
      part_begun.Notify();
      aside_begun.WaitForNotification();
    });
    EXPECT_THAT(CallsOf(helpers, 100), Each(1));
  }
  EXPECT_THAT(CallsOf(helpers, 100), Each(1));
  EXPECT_EQ(asides, 1);
}

TEST(WorkHelpersTest, AnAsideThatNobodyCanDoBesideTheCallerIsNotDone) {
  WorkHelpers none(0);
  int asides = 0;
  const auto count = [&] { ++asides; };
  for (int i = 0; i < 2; ++i) {
    const WorkHelpers::Aside aside(count);
    EXPECT_THAT(CallsOf(none, 5), Each(1));
  }
  EXPECT_EQ(asides, 0);
}

}  // namespace
}  // namespace parasol

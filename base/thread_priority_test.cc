#include "base/thread_priority.h"

#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "gtest/gtest.h"

namespace parasol {
namespace {

int Niceness() { return getpriority(PRIO_PROCESS, 0); }

// The highest niceness is 19, whatever this test was started with.
int More(int niceness, int more) { return std::min(niceness + more, 19); }

TEST(LowerThreadPriorityTest, OnlyTheCallingThreadAndItsOwnYield) {
  const int unchanged = Niceness();
  const int before = std::max(unchanged, 0);
  int own = -1;
  int child = -1;
  std::thread([&] {
    LowerThreadPriority(More(before, 3));
    own = Niceness();
    std::thread([&] { child = Niceness(); }).join();
  }).join();
  EXPECT_EQ(own, More(before, 3));
  EXPECT_EQ(child, More(before, 3));
  EXPECT_EQ(Niceness(), unchanged);
}

TEST(LowerThreadPriorityTest, AThreadThatYieldsMoreStaysSo) {
  const int before = std::max(Niceness(), 0);
  int own = -1;
  std::thread([&] {
    LowerThreadPriority(More(before, 5));
    LowerThreadPriority(More(before, 2));
    own = Niceness();
  }).join();
  EXPECT_EQ(own, More(before, 5));
}

}  // namespace
}  // namespace parasol

#include "ps/machine_memory.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kMeminfo[] =
    "MemTotal:       24679420 kB\nMemFree:        20000000 kB\n";

TEST(MachineMemoryTest, TheSmallestLimitCounts) {
  EXPECT_EQ(SmallestMemory(kMeminfo, {}), uint64_t{24679420} << 10);
  EXPECT_EQ(SmallestMemory(kMeminfo, {"max\n", "", "garbage"}),
            uint64_t{24679420} << 10);
  EXPECT_EQ(SmallestMemory(kMeminfo, {"max\n", "2147483648\n"}),
            uint64_t{1} << 31);
  EXPECT_EQ(SmallestMemory("", {"9223372036854771712"}), 9223372036854771712u);
  EXPECT_EQ(SmallestMemory("MemTotal: 99999999999999999999 kB", {}),
            UINT64_MAX);
  EXPECT_EQ(SmallestMemory("", {"0"}), UINT64_MAX);
}

TEST(MachineMemoryTest, LimitsAreThoseOfTheGroupAndAllAbove) {
  EXPECT_THAT(MemoryLimitFiles("0::/pods/a\n"),
              ElementsAre("/sys/fs/cgroup/pods/a/memory.max",
                          "/sys/fs/cgroup/pods/memory.max",
                          "/sys/fs/cgroup/memory.max"));
  EXPECT_THAT(MemoryLimitFiles("0::/\n"),
              ElementsAre("/sys/fs/cgroup/memory.max"));
  EXPECT_THAT(MemoryLimitFiles("5:cpu:/x\n4:memory:/a\n"),
              ElementsAre("/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                          "/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  EXPECT_THAT(MemoryLimitFiles("no group"), IsEmpty());
}

TEST(MachineMemoryTest, ThisMachineHasMemory) {
  EXPECT_GT(MachineMemoryBytes(), uint64_t{1} << 20);
  EXPECT_LT(MachineMemoryBytes(), uint64_t{1} << 50);
}

}  // namespace
}  // namespace parasol

#include "ml/input/file/available_memory.h"

#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Optional;

constexpr int64_t kMega = 1 << 20;
constexpr char kMeminfo[] =
    "MemTotal:       8192 kB\nMemAvailable:    4096 kB\nCached: 9 kB\n";

TEST(AvailableMemoryTest, TheMachineLeavesWhatItSays) {
  EXPECT_THAT(AvailableMemoryOf({.meminfo = kMeminfo}), Optional(4 * kMega));
  EXPECT_EQ(AvailableMemoryOf({}), std::nullopt);
  EXPECT_EQ(AvailableMemoryOf({.meminfo = "MemAvailable: much\n"}),
            std::nullopt);
}

TEST(AvailableMemoryTest, AControlGroupsPageCacheCountsAsFree) {
  MemoryFacts facts = {.meminfo = kMeminfo,
                       .cgroup_limit = "3145728\n",
                       .cgroup_current = "3145728\n",
                       .cgroup_stat =
                           "anon 5\ninactive_file 1048576\n"
                           "active_file 1048576\nfile 2097152\n"};
  EXPECT_THAT(AvailableMemoryOf(facts), Optional(2 * kMega));
  facts.cgroup_limit = "max\n";
  EXPECT_THAT(AvailableMemoryOf(facts), Optional(4 * kMega));
  // What the first version of control groups says for none.
  facts.cgroup_limit = "9223372036854771712\n";
  EXPECT_THAT(AvailableMemoryOf(facts), Optional(4 * kMega));
}

TEST(AvailableMemoryTest, LimitsOfTheProcessCountWhatItHas) {
  MemoryFacts facts = {.meminfo = kMeminfo,
                       .status = "VmSize:    2048 kB\nVmData:\t 1024 kB\n",
                       .address_space_limit = 3 * kMega};
  EXPECT_THAT(AvailableMemoryOf(facts), Optional(kMega));
  facts.data_limit = kMega;
  EXPECT_THAT(AvailableMemoryOf(facts), Optional(0));
}

TEST(AvailableMemoryTest, ThisProcessMayTakeSomething) {
  const std::optional<int64_t> available = AvailableMemory();
  ASSERT_TRUE(available.has_value());
  EXPECT_GT(*available, 0);
}

}  // namespace
}  // namespace parasol

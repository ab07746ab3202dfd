#include "tests/benchmark/cpu_use.h"

#include <unistd.h>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(CpuUseTest, ForeignIsWhatTheMachineHasUsedBeyondTheMeasured) {
  const absl::Duration cores = absl::Seconds(sysconf(_SC_NPROCESSORS_ONLN));
  const CpuUse use = {.measured = .5 * cores, .machine = .75 * cores};
  EXPECT_DOUBLE_EQ(ForeignShare(use, absl::Seconds(1)), .25);
  EXPECT_DOUBLE_EQ(ForeignShare(use, absl::Seconds(2)), .125);
}

TEST(CpuUseTest, TheMeasuredAreNeverForeign) {
  // Ticks of the machine are coarser than the times of a process.
  const CpuUse use = {.measured = absl::Seconds(1),
                      .machine = absl::Milliseconds(990)};
  EXPECT_EQ(ForeignShare(use, absl::Seconds(1)), 0);
  EXPECT_EQ(ForeignShare(use, absl::ZeroDuration()), 0);
}

TEST(CpuUseTest, TimesOfProcessesAndOfTheMachineAreRead) {
  // A tick of this process, which the machine has counted, too.
  const CpuUse before = CpuUse::Now({});
  CpuUse now;
  do {
    now = CpuUse::Now({});
  } while ((now - before).measured < absl::Milliseconds(50));
  EXPECT_GT(now.machine, before.machine);
  const CpuUse twice = CpuUse::Now({getpid()});
  EXPECT_GE(twice.measured, now.measured + absl::Milliseconds(40));
  EXPECT_GE(CpuUse::Now({-1}).measured, now.measured)
      << "a process that is gone counts nothing";
}

}  // namespace
}  // namespace parasol

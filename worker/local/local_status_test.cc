#include "worker/local/local_status.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(LocalStatusTest, TheRateIsThatOfTheLastSecondsOfSteps) {
  LocalStatus status;
  const absl::Time start = absl::UnixEpoch();
  status.NoteStep(100, 32, start);
  EXPECT_EQ(status.Get().global_step(), 100);
  EXPECT_EQ(status.Get().examples_per_second(), 0);
  status.NoteStep(120, 32, start + absl::Seconds(1));
  status.NoteStep(150, 32, start + absl::Seconds(2));
  EXPECT_DOUBLE_EQ(status.Get().examples_per_second(), 50 * 32 / 2.);
  // What an evaluation takes is no step's time.
  status.Pause();
  status.NoteStep(150, 32, start + absl::Seconds(60));
  status.NoteStep(160, 32, start + absl::Seconds(62));
  EXPECT_DOUBLE_EQ(status.Get().examples_per_second(), 10 * 32 / 2.);
  EXPECT_EQ(status.Get().global_step(), 160);
}

}  // namespace
}  // namespace parasol

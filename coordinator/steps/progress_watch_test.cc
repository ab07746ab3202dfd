#include "coordinator/steps/progress_watch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kLong = absl::Seconds(30);

class ProgressWatchTest : public testing::Test {
 protected:
  std::vector<uint64_t> Still() { return watch_.Still(kLong, now_); }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  ProgressWatch watch_;
};

TEST_F(ProgressWatchTest, AWorkerThatHoldsStepsAndCompletesNoneStandsStill) {
  watch_.Report(1, 5, true, now_);
  watch_.Report(2, 5, true, now_);
  now_ += kLong;
  watch_.Report(1, 5, true, now_);
  watch_.Report(2, 6, true, now_);
  EXPECT_THAT(Still(), ElementsAre(1));
}

TEST_F(ProgressWatchTest, AWorkerThatHoldsNothingWaitsForOthers) {
  watch_.Report(1, 5, true, now_);
  watch_.Report(1, 5, false, now_);
  now_ += kLong;
  watch_.Report(1, 5, true, now_);
  EXPECT_THAT(Still(), IsEmpty());
}

TEST_F(ProgressWatchTest, ALateReportIsNoProgress) {
  watch_.Report(1, 5, true, now_);
  now_ += kLong;
  watch_.Report(1, 3, true, now_);
  EXPECT_THAT(Still(), ElementsAre(1));
}

TEST_F(ProgressWatchTest, AllBeginAnew) {
  watch_.Report(1, 5, true, now_);
  now_ += kLong;
  watch_.StartOver(now_);
  EXPECT_THAT(Still(), IsEmpty());
  now_ += kLong;
  EXPECT_THAT(Still(), ElementsAre(1));
  watch_.Forget(1);
  EXPECT_THAT(Still(), IsEmpty());
}

}  // namespace
}  // namespace parasol

#include "coordinator/steps/followed_data.h"

#include <optional>
#include <vector>

#include "base/status_matchers.h"
#include "coordinator/steps/step_ledger.h"
#include "coordinator/testing/ledger_claims.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

constexpr int64_t kEnd = int64_t{1} << 50;

class FollowedDataTest : public testing::Test {
 protected:
  FollowedDataTest() {
    ledger_.SetEnd(kEnd);
    ledger_.Enter(1, {0});
  }

  void Add(const std::string& path, int64_t records, int64_t left = 0) {
    FollowedLook look;
    look.files = {data_.files().Next(path, 1, records, 4)};
    look.left = left;
    ASSERT_OK(data_.Take(look, now_));
    ledger_.SetBatches(data_.files().batches());
    data_.Observe(ledger_, true, now_);
  }
  void Train(int64_t steps) {
    const int64_t end = ledger_.global_step() + steps;
    while (ledger_.global_step() < end) {
      const int64_t more = end - ledger_.global_step();
      const int64_t granted = Claim(ledger_, 1, more, 1);
      ASSERT_GT(granted, ledger_.global_step());
      ledger_.Report(1, granted);
    }
    data_.Observe(ledger_, true, now_);
  }
  wire::FollowedData Status() {
    wire::JobStatus status;
    data_.AddTo(status, ledger_.global_step(), now_);
    return status.followed();
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  StepLedger ledger_;
  FollowedData data_{"clicks/*", FollowedFiles()};
};

TEST_F(FollowedDataTest, WaitsWhenAllIsTrainedAndNoLonger) {
  Add("a", 8);
  EXPECT_FALSE(data_.IsWaiting());
  Train(2);
  EXPECT_TRUE(data_.IsWaiting());
  now_ += absl::Seconds(7);
  data_.Observe(ledger_, true, now_);
  EXPECT_EQ(Status().waited().seconds(), 7);
  EXPECT_EQ(Status().waiting_records(), 0);
  EXPECT_EQ(Status().newest_age().seconds(), 7);
  Add("b", 4);
  EXPECT_FALSE(data_.IsWaiting());
  EXPECT_EQ(Status().waiting_records(), 4);
  EXPECT_EQ(Status().files(), 2);
  EXPECT_EQ(Status().newest(), "b");
  EXPECT_FALSE(Status().has_waited());
}

TEST_F(FollowedDataTest, DoesNotWaitWhileFilesAreReadOrTheJobIsBusy) {
  Add("a", 4, /*left=*/3);
  Train(1);
  EXPECT_FALSE(data_.IsWaiting());
  EXPECT_EQ(Status().waiting_files(), 3);
  ASSERT_OK(data_.Take({}, now_));
  data_.Observe(ledger_, /*is_training=*/false, now_);
  EXPECT_FALSE(data_.IsWaiting());
  data_.Observe(ledger_, true, now_);
  EXPECT_TRUE(data_.IsWaiting());
}

TEST_F(FollowedDataTest, KeepsAFileOfWhichAWorkerHasABatch) {
  Add("a", 4);
  Add("b", 40);
  ASSERT_EQ(Claim(ledger_, 1, 1, 1), 1);
  data_.Observe(ledger_, true, now_);
  EXPECT_EQ(data_.files().trained(), 0);
  // It goes: its batch is granted to another one first.
  ledger_.Release(1);
  data_.Observe(ledger_, true, now_);
  EXPECT_EQ(data_.files().trained(), 0);
  ledger_.Enter(2, {0});
  ASSERT_EQ(Claim(ledger_, 2, 1, 1), 1);
  ledger_.Report(2, 1);
  data_.Observe(ledger_, true, now_);
  EXPECT_EQ(data_.files().trained(), 1);
}

TEST_F(FollowedDataTest, AFileThatIsNotNextIsRefused) {
  Add("b", 4);
  FollowedLook look;
  look.files = {data_.files().Next("a", 1, 4, 4)};
  EXPECT_THAT(data_.Take(look, now_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol

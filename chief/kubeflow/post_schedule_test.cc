#include "chief/kubeflow/post_schedule.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

const absl::Time kFirst = absl::FromUnixSeconds(1000);

absl::Time After(int64_t seconds) { return kFirst + absl::Seconds(seconds); }

TEST(PostScheduleTest, APostIsDueAtTheStartAndEveryTenSeconds) {
  PostSchedule schedule;
  EXPECT_TRUE(schedule.IsDue(wire::TRAINING, kFirst));
  schedule.Took(wire::TRAINING, kFirst, After(3), absl::OkStatus());
  EXPECT_FALSE(schedule.IsDue(wire::TRAINING, After(9)));
  EXPECT_TRUE(schedule.IsDue(wire::TRAINING, After(10)));
}

TEST(PostScheduleTest, AnotherPhaseIsPostedAfterFiveSeconds) {
  PostSchedule schedule;
  schedule.Took(wire::TRAINING, kFirst, kFirst, absl::OkStatus());
  EXPECT_FALSE(schedule.IsDue(wire::COMPLETE, After(4)));
  EXPECT_TRUE(schedule.IsDue(wire::COMPLETE, After(5)));
}

TEST(PostScheduleTest, AServerThatRefusesIsAskedLessAndLessOften) {
  PostSchedule schedule;
  absl::Time now = kFirst;
  for (const int wait : {10, 20, 40, 80, 160, 300, 300}) {
    SCOPED_TRACE(wait);
    // A slow server has had its time: the wait begins when the post has ended.
    schedule.Took(wire::TRAINING, now, now + absl::Seconds(7),
                  absl::UnavailableError("gone"));
    now += absl::Seconds(7 + wait);
    EXPECT_FALSE(schedule.IsDue(wire::COMPLETE, now - absl::Seconds(1)));
    EXPECT_TRUE(schedule.IsDue(wire::TRAINING, now));
  }
  schedule.Took(wire::TRAINING, now, now, absl::OkStatus());
  EXPECT_TRUE(schedule.IsDue(wire::TRAINING, now + absl::Seconds(10)));
}

TEST(PostScheduleTest, TheEndIsPostedOnceAndToNoServerThatIsAway) {
  PostSchedule schedule;
  EXPECT_TRUE(schedule.IsDueAtTheEnd(wire::COMPLETE));
  schedule.Took(wire::TRAINING, kFirst, kFirst, absl::OkStatus());
  EXPECT_FALSE(schedule.IsDueAtTheEnd(wire::TRAINING));
  EXPECT_TRUE(schedule.IsDueAtTheEnd(wire::COMPLETE));
  schedule.Took(wire::COMPLETE, After(5), After(5), absl::OkStatus());
  EXPECT_FALSE(schedule.IsDueAtTheEnd(wire::COMPLETE));
  schedule.Took(wire::COMPLETE, After(15), After(15),
                absl::PermissionDeniedError("answered 403"));
  EXPECT_TRUE(schedule.IsDueAtTheEnd(wire::FAILED));
  schedule.Took(wire::COMPLETE, After(25), After(25),
                absl::UnavailableError("gone"));
  EXPECT_FALSE(schedule.IsDueAtTheEnd(wire::FAILED));
}

TEST(PostScheduleTest, TheLogHasEachChangeOnce) {
  PostSchedule schedule;
  const auto took = [&schedule](const absl::Status& result) {
    return schedule.Took(wire::TRAINING, kFirst, kFirst, result);
  };
  EXPECT_THAT(took(absl::OkStatus()), Optional(HasSubstr("is posted")));
  EXPECT_THAT(took(absl::OkStatus()), Eq(std::nullopt));
  EXPECT_THAT(took(absl::UnavailableError("refused 403")),
              Optional(HasSubstr("can't be posted to Kubeflow Trainer: refused "
                                 "403; the training goes on")));
  EXPECT_THAT(took(absl::UnavailableError("refused 403")), Eq(std::nullopt));
  EXPECT_THAT(took(absl::UnavailableError("gone")),
              Optional(HasSubstr("gone")));
  EXPECT_THAT(took(absl::OkStatus()), Optional(HasSubstr("is posted")));
}

// libcurl's texts have milliseconds, and servers' have numbers of requests.
TEST(PostScheduleTest, AFailureWhoseNumbersChangeIsOneFailure) {
  PostSchedule schedule;
  const auto took = [&schedule](const absl::Status& result) {
    return schedule.Took(wire::TRAINING, kFirst, kFirst, result).has_value();
  };
  EXPECT_TRUE(took(absl::UnavailableError(
      "https://trainer:443: Operation timed out after 10001 milliseconds")));
  EXPECT_FALSE(took(absl::UnavailableError(
      "https://trainer:443: Operation timed out after 10000 milliseconds")));
  EXPECT_TRUE(took(absl::UnavailableError(
      "https://trainer:443: Failed to connect after 3 ms")));
  EXPECT_TRUE(took(absl::FailedPreconditionError(
      "the server answered 500: request 7f21-a3 failed")));
  EXPECT_FALSE(took(absl::FailedPreconditionError(
      "the server answered 500: request 8e02-b4 failed")));
  EXPECT_TRUE(took(absl::FailedPreconditionError(
      "the server answered 404: request 9d00-c5 failed")));
}

TEST(PostScheduleTest, AServerThatComesAndGoesIsInTheLogAFewTimes) {
  PostSchedule schedule;
  const auto took = [&schedule](int64_t seconds, const absl::Status& result) {
    return schedule.Took(wire::TRAINING, After(seconds), After(seconds), result)
        .has_value();
  };
  const absl::Status gone = absl::UnavailableError("gone");
  EXPECT_TRUE(took(0, gone));
  EXPECT_TRUE(took(10, absl::OkStatus()));
  for (int64_t seconds = 20; seconds < 600; seconds += 20) {
    EXPECT_FALSE(took(seconds, gone)) << seconds;
    EXPECT_FALSE(took(seconds + 10, absl::OkStatus())) << seconds;
  }
  EXPECT_TRUE(took(620, gone));
  EXPECT_TRUE(took(630, absl::OkStatus()));
}

}  // namespace
}  // namespace parasol

#include "coordinator/steps/evaluation_lag.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Minutes(5);

absl::Time After(double seconds) {
  return absl::FromUnixSeconds(1000) + absl::Seconds(seconds);
}

job::EvaluationPolicy EverySteps(int64_t steps,
                                 std::optional<int64_t> max_lag) {
  job::EvaluationPolicy policy;
  policy.set_every_steps(steps);
  if (max_lag) policy.set_max_lag(*max_lag);
  return policy;
}

job::EvaluationPolicy EverySeconds(std::optional<int64_t> max_lag) {
  job::EvaluationPolicy policy;
  policy.set_every_seconds(5);
  if (max_lag) policy.set_max_lag(*max_lag);
  return policy;
}

EvaluationLag::Look At(int64_t step, double seconds = 0) {
  return {.global_step = step,
          .is_training = true,
          .has_evaluator = true,
          .now = After(seconds)};
}

TEST(EvaluationLagTest, WithoutAMaxTheJobNeverWaits) {
  EvaluationLag lag(EverySteps(100, std::nullopt), 0, -1, kLimit);
  for (int64_t step = 100; step <= 1000; step += 100) {
    lag.Written(step);
    lag.Observe(At(step));
    EXPECT_EQ(lag.StepLimit(), std::nullopt);
    EXPECT_EQ(lag.awaited(), std::nullopt);
    EXPECT_EQ(lag.due(), step / 100);
  }
}

TEST(EvaluationLagTest, WithoutTimesNothingIsDue) {
  EvaluationLag lag(job::EvaluationPolicy(), 0, -1, kLimit);
  EXPECT_EQ(lag.Observe(At(100000)), std::nullopt);
  EXPECT_EQ(lag.due(), 0);
  EXPECT_EQ(lag.StepLimit(), std::nullopt);
}

TEST(EvaluationLagTest, WithAMaxOfNoneEachEvaluationIsAwaited) {
  EvaluationLag lag(EverySteps(100, 0), 0, -1, kLimit);
  lag.Observe(At(0));
  EXPECT_EQ(lag.StepLimit(), 100);
  lag.Observe(At(100));
  EXPECT_EQ(lag.StepLimit(), 100);
  EXPECT_EQ(lag.awaited(), std::nullopt) << "there is no checkpoint yet";
  lag.Written(100);
  lag.Observe(At(100));
  EXPECT_EQ(lag.StepLimit(), 0);
  EXPECT_EQ(lag.awaited(), 100);
  lag.Evaluated(100);
  lag.Observe(At(100));
  EXPECT_EQ(lag.StepLimit(), 200);
  EXPECT_EQ(lag.awaited(), std::nullopt);
}

TEST(EvaluationLagTest, ALargerMaxLetsThatManyBeDue) {
  EvaluationLag lag(EverySteps(100, 2), 0, -1, kLimit);
  lag.Observe(At(0));
  EXPECT_EQ(lag.StepLimit(), 300);
  lag.Written(100);
  EXPECT_EQ(lag.StepLimit(), 300);
  lag.Written(200);
  EXPECT_EQ(lag.StepLimit(), 300);
  lag.Written(300);
  EXPECT_EQ(lag.StepLimit(), 0);
  lag.Observe(At(300));
  EXPECT_EQ(lag.awaited(), 100);
  lag.Evaluated(100);
  EXPECT_EQ(lag.StepLimit(), 400);
  // The evaluator has left one out.
  lag.Evaluated(300);
  EXPECT_EQ(lag.StepLimit(), 600);
}

TEST(EvaluationLagTest, EvaluationsByTimeAreCountedAsTheyAreWritten) {
  EvaluationLag lag(EverySeconds(1), 0, -1, kLimit);
  lag.Observe(At(0));
  EXPECT_EQ(lag.StepLimit(), std::nullopt);
  lag.Written(17);
  EXPECT_EQ(lag.StepLimit(), std::nullopt);
  lag.Written(31);
  EXPECT_EQ(lag.StepLimit(), 0);
  lag.Observe(At(35));
  EXPECT_EQ(lag.awaited(), 17);
  EXPECT_EQ(lag.due(), 2);
  lag.Evaluated(17);
  EXPECT_EQ(lag.StepLimit(), std::nullopt);
}

TEST(EvaluationLagTest, ARunGoesOnFromItsCheckpoint) {
  EvaluationLag evaluated(EverySteps(100, 0), 250, 200, kLimit);
  evaluated.Observe(At(250));
  EXPECT_EQ(evaluated.StepLimit(), 300);
  EvaluationLag awaited(EverySteps(100, 0), 200, 100, kLimit);
  awaited.Written(200);
  awaited.Observe(At(200));
  EXPECT_EQ(awaited.awaited(), 200);
  // The job was trained without a bound before, or without an evaluator.
  EvaluationLag behind(EverySteps(100, 0), 950, -1, kLimit);
  behind.Observe(At(950));
  EXPECT_EQ(behind.StepLimit(), 1000);
}

TEST(EvaluationLagTest, TheJobGoesOnWithoutAnEvaluationThatDoesNotCome) {
  EvaluationLag lag(EverySteps(100, 0), 0, -1, kLimit);
  lag.Observe(At(100));
  lag.Written(100);
  EXPECT_EQ(lag.Observe(At(100, 1)), std::nullopt);
  EXPECT_EQ(lag.Observe(At(100, 300)), std::nullopt);
  EXPECT_EQ(lag.waited(), absl::Seconds(299));
  EXPECT_THAT(
      lag.Observe(At(100, 301)),
      testing::Optional(AllOf(HasSubstr("no evaluation of step 100 came "
                                        "within 5m"),
                              HasSubstr("see the log of evaluator/0"))));
  EXPECT_EQ(lag.StepLimit(), std::nullopt);
  EXPECT_EQ(lag.awaited(), std::nullopt);
  EXPECT_EQ(lag.Observe(At(100, 302)), std::nullopt) << "said once";
  lag.Written(200);
  EXPECT_EQ(lag.StepLimit(), std::nullopt);
  // It is there again.
  lag.Evaluated(100);
  lag.Observe(At(230, 310));
  EXPECT_EQ(lag.StepLimit(), 0);
  EXPECT_EQ(lag.awaited(), 200);
  EXPECT_EQ(lag.Observe(At(230, 311)), std::nullopt);
}

TEST(EvaluationLagTest, AnEvaluatorThatIsNotThereIsSaidSo) {
  EvaluationLag lag(EverySteps(100, 0), 0, -1, kLimit);
  lag.Written(100);
  EvaluationLag::Look look = At(100);
  look.has_evaluator = false;
  lag.Observe(look);
  look.now += kLimit;
  EXPECT_THAT(lag.Observe(look),
              testing::Optional(HasSubstr("evaluator/0 is not there")));
}

TEST(EvaluationLagTest, EachResultBeginsTheLimitAnew) {
  EvaluationLag lag(EverySteps(100, 1), 0, -1, kLimit);
  for (const int64_t step : {100, 200, 300}) lag.Written(step);
  lag.Observe(At(300));
  lag.Observe(At(300, 299));
  lag.Evaluated(100);
  EXPECT_EQ(lag.Observe(At(300, 500)), std::nullopt);
  EXPECT_EQ(lag.awaited(), 200);
}

TEST(EvaluationLagTest, ACheckpointThatCantBeWrittenHoldsUpNothing) {
  EvaluationLag lag(EverySteps(100, 0), 0, -1, kLimit);
  EvaluationLag::Look look = At(100);
  look.is_failing = true;
  lag.Observe(look);
  EXPECT_EQ(lag.StepLimit(), std::nullopt);
  lag.Written(130);
  lag.Observe(At(130));
  EXPECT_EQ(lag.awaited(), 130);
}

TEST(EvaluationLagTest, NothingIsAwaitedBeforeAndAfterTraining) {
  EvaluationLag lag(EverySteps(100, 0), 0, -1, kLimit);
  lag.Written(100);
  EvaluationLag::Look look = At(100);
  look.is_training = false;
  EXPECT_EQ(lag.Observe(look), std::nullopt);
  EXPECT_EQ(lag.due(), 0);
  look.now += absl::Hours(1);
  EXPECT_EQ(lag.Observe(look), std::nullopt);
}

// Workers of a chief before this one may claim before the training goes on.
TEST(EvaluationLagTest, StepsAreHeldBackBeforeTheTrainingAndNotBehindIt) {
  EvaluationLag lag(EverySteps(100, 0), 100, -1, kLimit);
  lag.Written(100);
  EvaluationLag::Look look = At(100);
  look.is_training = false;
  lag.Observe(look);
  EXPECT_EQ(lag.StepLimit(), 0);
  look.is_over = true;
  lag.Observe(look);
  EXPECT_EQ(lag.StepLimit(), std::nullopt);
}

TEST(EvaluationLagTest, FallingBehindIsSaidOnce) {
  EvaluationLag lag(EverySteps(255, std::nullopt), 0, -1, kLimit);
  EXPECT_EQ(lag.Observe(At(600)), std::nullopt) << "two may be on their way";
  lag.Written(255);
  lag.Evaluated(255);
  EXPECT_THAT(lag.Observe(At(2550)),
              testing::Optional(AllOf(
                  HasSubstr("at step 2550 9 are due without a result, and the "
                            "newest one is of step 255"),
                  HasSubstr("evaluation.max_lag"))));
  EXPECT_EQ(lag.Observe(At(5100)), std::nullopt);
  EXPECT_EQ(lag.due(), 19);
}

TEST(EvaluationLagTest, LargeNumbersAreNoLimit) {
  EvaluationLag lag(EverySteps(int64_t{1} << 52, int64_t{1} << 52), 0, -1,
                    kLimit);
  lag.Observe(At(5));
  EXPECT_EQ(lag.StepLimit(), std::nullopt);
}

}  // namespace
}  // namespace parasol

#include "coordinator/job_phases.h"

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Eq;
using ::testing::Optional;

class JobPhasesTest : public testing::Test {
 protected:
  const absl::Time start_ = absl::FromUnixSeconds(1000000);
  const absl::Time later_ = start_ + absl::Seconds(7);
  const JobPhases::Options options_ = {.finish_timeout = absl::Seconds(30)};
  JobPhases phases_{options_, start_};
};

TEST_F(JobPhasesTest, AJobBeginsByWaitingForPs) {
  EXPECT_EQ(phases_.phase(), wire::WAITING_FOR_PS);
  EXPECT_EQ(phases_.since(), start_);
  EXPECT_FALSE(phases_.HasEnded());
  EXPECT_EQ(phases_.Outcome(true, false, later_), std::nullopt);
}

TEST_F(JobPhasesTest, EachPhaseHasABeginAndIsNews) {
  const int64_t begun = phases_.begun();
  phases_.Enter(wire::LOADING, later_);
  EXPECT_EQ(phases_.phase(), wire::LOADING);
  EXPECT_EQ(phases_.since(), later_);
  EXPECT_NE(phases_.begun(), begun);
}

TEST_F(JobPhasesTest, TrainingLastsUntilTheNextPhase) {
  EXPECT_EQ(phases_.Trained(later_), std::nullopt);
  phases_.Enter(wire::TRAINING, start_);
  EXPECT_THAT(phases_.training_since(), Optional(start_));
  EXPECT_THAT(phases_.Trained(later_), Optional(absl::Seconds(7)));
  phases_.Enter(wire::FINISHING, later_);
  phases_.Enter(wire::COMPLETE, later_ + absl::Seconds(1));
  EXPECT_THAT(phases_.Trained(later_ + absl::Hours(1)),
              Optional(absl::Seconds(7)));
}

TEST_F(JobPhasesTest, CompleteEndsWhenAllHaveLeftOrItIsTooLate) {
  phases_.Enter(wire::COMPLETE, start_);
  EXPECT_TRUE(phases_.HasEnded());
  EXPECT_EQ(phases_.Outcome(false, false, later_), std::nullopt);
  EXPECT_THAT(phases_.Outcome(true, false, later_), Optional(absl::OkStatus()));
  EXPECT_THAT(phases_.Outcome(false, false, start_ + absl::Seconds(30)),
              Optional(absl::OkStatus()));
}

TEST_F(JobPhasesTest, AChiefThatIsToldToStopWaitsLessForTasks) {
  phases_.Enter(wire::COMPLETE, start_);
  EXPECT_EQ(phases_.LeaveDeadline(false), start_ + absl::Seconds(30));
  EXPECT_LT(phases_.LeaveDeadline(true), later_);
  EXPECT_THAT(phases_.Outcome(false, true, later_), Optional(absl::OkStatus()));
}

TEST_F(JobPhasesTest, AJobThatWasCompleteLingers) {
  JobPhases phases(
      {.already_complete = true, .finish_timeout = absl::ZeroDuration()},
      start_);
  EXPECT_EQ(phases.phase(), wire::COMPLETE);
  EXPECT_EQ(phases.LeaveDeadline(false), start_);
  JobPhases patient(
      {.already_complete = true, .finish_timeout = absl::Seconds(30)}, start_);
  EXPECT_EQ(patient.Outcome(true, false, start_), std::nullopt);
  EXPECT_THAT(patient.Outcome(true, false, start_ + kCompleteLinger),
              Optional(absl::OkStatus()));
}

TEST_F(JobPhasesTest, TheFirstFailureIsTheOutcome) {
  const absl::Status failure = absl::InvalidArgumentError("disk");
  phases_.Fail(failure, later_);
  phases_.Fail(absl::FailedPreconditionError("other"), later_);
  EXPECT_EQ(phases_.phase(), wire::FAILED);
  EXPECT_EQ(phases_.failure(), "disk");
  EXPECT_THAT(phases_.Outcome(true, false, later_), Optional(failure));
}

TEST_F(JobPhasesTest, ACompleteJobDoesNotFail) {
  phases_.Enter(wire::COMPLETE, start_);
  phases_.Fail(absl::FailedPreconditionError("late"), later_);
  EXPECT_EQ(phases_.phase(), wire::COMPLETE);
  EXPECT_EQ(phases_.failure(), "");
}

TEST_F(JobPhasesTest, AChiefThatGivesUpWaitsForNobodyAndFailsNoJob) {
  phases_.Enter(wire::TRAINING, start_);
  phases_.GiveUp(absl::UnavailableError("waited for ps/0"));
  EXPECT_TRUE(phases_.HasGivenUp());
  EXPECT_EQ(phases_.phase(), wire::TRAINING);
  EXPECT_THAT(phases_.Outcome(false, false, start_),
              Optional(Eq(absl::UnavailableError("waited for ps/0"))));
}

}  // namespace
}  // namespace parasol

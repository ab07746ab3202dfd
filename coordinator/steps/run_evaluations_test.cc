#include "coordinator/steps/run_evaluations.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

class RunEvaluationsTest : public testing::Test {
 protected:
  RunEvaluationsTest() {
    job_.mutable_evaluation()->set_every_steps(10);
    options_.has_place = true;
    options_.limit = absl::Minutes(5);
  }

  static Evaluation EvaluationOf(int64_t step, double loss) {
    Evaluation evaluation;
    evaluation.global_step = step;
    evaluation.metrics.emplace_back("loss", loss);
    return evaluation;
  }
  RunEvaluations& run() {
    if (!run_) run_.emplace(job_, options_, now_);
    return *run_;
  }
  EvaluationLag::Look LookAt(int64_t step) const {
    return {.global_step = step,
            .is_training = true,
            .has_evaluator = true,
            .now = now_};
  }

  const absl::Time now_ = absl::FromUnixSeconds(1000000);
  job::Job job_;
  RunEvaluations::Options options_;
  std::optional<RunEvaluations> run_;
};

TEST_F(RunEvaluationsTest, ACheckpointIsDueOncePerTime) {
  EXPECT_FALSE(run().IsDue(9, now_));
  EXPECT_TRUE(run().IsDue(10, now_));
  run().Written(10, now_);
  EXPECT_FALSE(run().IsDue(10, now_));
  EXPECT_TRUE(run().IsDue(20, now_));
}

TEST_F(RunEvaluationsTest, ACheckpointThatIsCutLaterIsEvaluatedWhenItIsDue) {
  EXPECT_THAT(run().DueFrom(9, now_), Optional(10));
  EXPECT_THAT(run().DueFrom(10, now_), Optional(10));
  run().Written(12, now_);
  EXPECT_THAT(run().DueFrom(13, now_), Optional(20));
}

TEST_F(RunEvaluationsTest, ASecondCheckpointOfAStepIsEvaluatedForTheFirst) {
  run().Written(10, now_);
  EXPECT_THAT(run().DueFrom(10, now_), Optional(10));
  run().Update({EvaluationOf(10, 1.)});
  EXPECT_THAT(run().DueFrom(10, now_), Optional(20));
}

TEST_F(RunEvaluationsTest, TimesGoOnFromTheResumedCheckpoint) {
  options_.resumed.emplace();
  options_.resumed->set_global_step(10);
  EXPECT_FALSE(run().IsDue(19, now_));
  EXPECT_TRUE(run().IsDue(20, now_));
}

TEST_F(RunEvaluationsTest, AResumedCheckpointThatIsDueIsAwaited) {
  job_.mutable_evaluation()->set_max_lag(0);
  options_.resumed.emplace();
  options_.resumed->set_global_step(10);
  options_.resumed->set_evaluation_due(true);
  run().Observe(LookAt(10));
  EXPECT_THAT(run().lag().awaited(), Optional(10));
  run().Update({EvaluationOf(10, 1.)});
  run().Observe(LookAt(10));
  EXPECT_EQ(run().lag().awaited(), std::nullopt);
}

TEST_F(RunEvaluationsTest, KeepsNothingWithoutAReason) {
  run().Update({EvaluationOf(10, 1.)});
  EXPECT_EQ(run().Kept(), KeptCheckpoints());
}

TEST_F(RunEvaluationsTest, KeepsTheBestAndThoseThatAreAwaited) {
  job_.mutable_checkpoint()->mutable_keep_best()->set_metric("loss");
  job_.mutable_evaluation()->set_max_lag(2);
  run().Update({EvaluationOf(10, 1.), EvaluationOf(20, 2.)});
  EXPECT_THAT(run().Kept().best_first, ElementsAre(10, 20));
  EXPECT_THAT(run().Kept().evaluated_to, Optional(20));
  EXPECT_EQ(run().Kept().awaited, 3) << "one more is being evaluated";
}

TEST_F(RunEvaluationsTest, WithoutAPlaceForAnEvaluatorNoResultIsAwaited) {
  job_.mutable_evaluation()->set_max_lag(2);
  options_.has_place = false;
  EXPECT_EQ(run().Kept().evaluated_to, std::nullopt);
}

TEST_F(RunEvaluationsTest, AWarningIsTakenOnce) {
  run().Observe(LookAt(0));
  EXPECT_THAT(run().TakeWarnings(), IsEmpty());
  run().Observe(LookAt(10 * EvaluationLag::kBehind));
  EXPECT_THAT(run().TakeWarnings(), ElementsAre(HasSubstr("evaluations")));
  EXPECT_THAT(run().TakeWarnings(), IsEmpty());
}

}  // namespace
}  // namespace parasol

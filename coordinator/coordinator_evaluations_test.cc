#include <cstdint>
#include <optional>
#include <vector>

#include "base/status_matchers.h"
#include "coordinator/coordinator.h"
#include "coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"

namespace parasol::coordinator_testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CoordinatorEvaluationsTest : public CoordinatorTest {
 protected:
  // The job ends when the loss is larger once.
  void StopEarly() {
    job::EarlyStopping& policy =
        *options_.job.mutable_end()->mutable_early_stopping();
    policy.set_metric("loss");
    policy.set_mode(job::MIN);
    policy.set_patience(1);
  }
  void ReduceRate() {
    job::Optimizer& optimizer = *options_.job.mutable_optimizer();
    optimizer.mutable_sgd()->set_learning_rate(.5);
    job::ReduceOnPlateau& policy = *optimizer.mutable_reduce_on_plateau();
    policy.set_metric("loss");
    policy.set_mode(job::MIN);
    policy.set_factor(.1);
    policy.set_patience(1);
  }
  static std::vector<Evaluation> Losses(const std::vector<double>& losses) {
    std::vector<Evaluation> evaluations;
    for (const double loss : losses) {
      Evaluation& evaluation = evaluations.emplace_back();
      evaluation.global_step = static_cast<int64_t>(evaluations.size());
      evaluation.loss = loss;
    }
    return evaluations;
  }
};

TEST_F(CoordinatorEvaluationsTest, TheJobEndsWithTheStepsThatAreGranted) {
  StopEarly();
  StartTraining();
  ASSERT_OK_AND_ASSIGN(const auto granted, Claim(worker0_, 0, 5));
  ASSERT_EQ(granted.granted_steps(), 5);
  ASSERT_OK(Claim(worker0_, 2, 0));
  EXPECT_THAT(chief().Evaluated(Losses({1, 2}), now_),
              ElementsAre(HasSubstr("early stopping: loss was 2 at step 2")));
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_EQ(chief().Status(now_).end_step(), 5);
  ASSERT_OK_AND_ASSIGN(const auto none, Claim(worker1_, 0, 5));
  EXPECT_EQ(none.granted_steps(), 0);
  ASSERT_OK(Claim(worker0_, 5, 5));
  EXPECT_EQ(phase(), wire::FINISHING);
  const auto order = NextCheckpoint();
  EXPECT_TRUE(order.manifest.final());
  EXPECT_EQ(order.manifest.global_step(), 5);
  CheckpointDone(order, absl::OkStatus());
  EXPECT_EQ(phase(), wire::COMPLETE);
}

TEST_F(CoordinatorEvaluationsTest, AnotherWorkerDoesTheStepsOfOneThatIsLost) {
  StopEarly();
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 5));
  ASSERT_OK(Claim(worker0_, 2, 0));
  chief().Evaluated(Losses({1, 2}), now_);
  ASSERT_OK(Leave(worker0_, 2));
  int64_t completed = 0;
  while (phase() == wire::TRAINING && completed < 5) {
    ASSERT_OK_AND_ASSIGN(const auto claim, Claim(worker1_, completed, 9));
    completed = claim.granted_steps();
  }
  EXPECT_EQ(completed, 3);
  EXPECT_EQ(phase(), wire::FINISHING);
}

TEST_F(CoordinatorEvaluationsTest, AnEarlyEndWaitsForTheEndToBeKnown) {
  StopEarly();
  options_.job.mutable_end()->clear_steps();
  options_.job.mutable_end()->set_epochs(3);
  Resume(7);
  options_.evaluations = Losses({1, 2});
  BringBackPs();
  RegisterWorkers();
  EXPECT_EQ(phase(), wire::TRAINING);
  ASSERT_OK(Claim(worker0_, 0, 5, /*examples=*/50));
  EXPECT_EQ(phase(), wire::TRAINING);
  ASSERT_OK(Claim(worker1_, 0, 5, /*examples=*/50));
  EXPECT_EQ(phase(), wire::FINISHING);
  EXPECT_EQ(chief().Status(now_).global_step(), 7);
}

TEST_F(CoordinatorEvaluationsTest, AChiefThatRestartsEndsWhereTheWorkersAre) {
  StopEarly();
  Resume(7);
  options_.evaluations = Losses({1, 2});
  BringBackPs();
  ASSERT_OK(Register(worker0_, kRun, /*completed=*/2));
  // The other worker may have done steps, too. No further one is granted.
  EXPECT_EQ(phase(), wire::TRAINING);
  ASSERT_OK_AND_ASSIGN(const auto claim, Claim(worker0_, 2, 5));
  EXPECT_EQ(claim.granted_steps(), 2);
  EXPECT_THAT(chief().Status(now_).awaited_task(), Contains("worker/1"));
  ASSERT_OK(Register(worker1_, kRun, /*completed=*/0));
  EXPECT_EQ(phase(), wire::TRAINING);
  // Worker 1 completes the step that it was in.
  ASSERT_OK(Claim(worker1_, 1, 5));
  EXPECT_EQ(phase(), wire::FINISHING);
  EXPECT_EQ(chief().Status(now_).end_step(), 10);
  EXPECT_EQ(NextCheckpoint().manifest.global_step(), 10);
}

TEST_F(CoordinatorEvaluationsTest,
       ARestartedChiefEndsWithoutAWorkerThatIsGone) {
  StopEarly();
  Resume(7);
  options_.evaluations = Losses({1, 2});
  options_.lease = absl::Seconds(10);
  BringBackPs();
  ASSERT_OK(Register(worker0_, kRun, /*completed=*/2));
  Pass(absl::Seconds(8), {ps0_, ps1_, worker0_});
  EXPECT_EQ(phase(), wire::TRAINING);
  Pass(absl::Seconds(2), {ps0_, ps1_, worker0_});
  EXPECT_EQ(phase(), wire::FINISHING);
  EXPECT_EQ(chief().Status(now_).end_step(), 9);
}

TEST_F(CoordinatorEvaluationsTest, SynchronousTrainingEndsWhenAllHaveHeard) {
  StopEarly();
  job::Synchronous& mode =
      *options_.job.mutable_parameter_server()->mutable_synchronous();
  mode.set_replicas_to_aggregate(2);
  mode.set_total_replicas(2);
  StartTraining();
  ASSERT_OK(Claim(worker0_, 4, 0));
  ASSERT_OK(Claim(worker1_, 4, 0));
  const int64_t news = chief().NewsAt(now_).claims;
  chief().Evaluated(Losses({1, 2}), now_);
  EXPECT_NE(chief().NewsAt(now_).claims, news);
  EXPECT_EQ(chief().Status(now_).end_step(), 5);
  EXPECT_EQ(phase(), wire::TRAINING);
  ASSERT_OK(Claim(worker0_, 5, 0));
  EXPECT_EQ(phase(), wire::TRAINING);
  // It had not heard of the end, and did one more step with its neighbour.
  ASSERT_OK(Claim(worker1_, 6, 0));
  EXPECT_EQ(chief().Status(now_).end_step(), 6);
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_THAT(chief().Status(now_).awaited_task(), ElementsAre("worker/0"));
  ASSERT_OK(Claim(worker0_, 6, 0));
  EXPECT_EQ(phase(), wire::FINISHING);
  EXPECT_EQ(chief().Status(now_).global_step(), 6);
}

TEST_F(CoordinatorEvaluationsTest, CheckpointsAreMarkedThatAreToBeEvaluated) {
  options_.job.mutable_evaluation()->set_every_steps(15);
  StartTraining();
  std::vector<int64_t> marked, others;
  for (int64_t step = 1; step <= 45; ++step) {
    TrainTo(step);
    while (HasOrder()) {
      const auto order = NextCheckpoint();
      (order.manifest.evaluation_due() ? marked : others).push_back(step);
      CheckpointDone(order, absl::OkStatus());
    }
  }
  EXPECT_THAT(marked, ElementsAre(15, 30, 45));
  EXPECT_THAT(others, ElementsAre(10, 20, 40));
}

TEST_F(CoordinatorEvaluationsTest, ThePsAreGivenTheReducedRate) {
  ReduceRate();
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 5));
  EXPECT_FALSE(HasOrder());
  chief().Evaluated(Losses({1, 2}), now_);
  const LoadOrder order = NextLoad();
  EXPECT_EQ(order.targets.size(), 2u);
  for (const auto& target : order.targets) EXPECT_TRUE(target.holds_shard);
  EXPECT_EQ(order.learning_rate, .05);
  EXPECT_EQ(phase(), wire::TRAINING);
  FinishLoad(order);
  EXPECT_FALSE(HasOrder());
  TrainTo(10);
  EXPECT_EQ(NextCheckpoint().manifest.reduced_learning_rate(), .05);
}

TEST_F(CoordinatorEvaluationsTest, ShardsThatStayAreNotGivenTheRateYet) {
  ReduceRate();
  StartTraining();
  TrainTo(5);
  AskToLeave(ps1_);
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
  ASSERT_OK(Leave(ps1_));
  chief().Evaluated(Losses({1, 2}), now_);
  EXPECT_FALSE(HasOrder()) << "ps/0 would go on alone";
  const wire::Task successor = Task("ps", 1, 99);
  ASSERT_OK(Register(successor));
  ASSERT_OK(Heartbeat(successor));
  FinishLoad(NextLoad());
  const LoadOrder order = NextLoad();
  EXPECT_EQ(order.targets.size(), 2u) << "it is there: both go on";
  EXPECT_EQ(order.learning_rate, .05);
  FinishLoad(order);
  EXPECT_FALSE(HasOrder());
}

TEST_F(CoordinatorEvaluationsTest, ACheckpointSaysFromWhichItDescends) {
  options_.chief_epoch = 7;
  StartTraining();
  TrainTo(10);
  const durable::CheckpointManifest written = NextCheckpoint().manifest;
  EXPECT_EQ(written.chief_epoch(), 7);
  EXPECT_EQ(written.earlier_owner_size(), 0);
}

TEST_F(CoordinatorEvaluationsTest, ARateThatCannotBeGivenIsInNobodysWay) {
  ReduceRate();
  StartTraining();
  TrainTo(3);
  chief().Evaluated(Losses({1, 2}), now_);
  const LoadOrder order = NextLoad();
  EXPECT_OK(Placement());
  for (const auto& target : order.targets) {
    LoadDone(target, absl::UnavailableError("no disk"));
  }
  EXPECT_THAT(chief().Status(now_).trouble(), HasSubstr("no disk"));
  EXPECT_EQ(phase(), wire::TRAINING);
  // A chief that is stopped still writes its last checkpoint.
  Stop();
  EXPECT_EQ(NextCheckpoint().manifest.global_step(), 3);
}

TEST_F(CoordinatorEvaluationsTest, ARestartedChiefLoadsWithTheReducedRate) {
  ReduceRate();
  Resume(10);
  options_.evaluations = Losses({1, 2});
  RegisterPs();
  const LoadOrder order = NextLoad();
  EXPECT_EQ(order.learning_rate, .05);
  FinishLoad(order);
  EXPECT_FALSE(HasOrder());
}

TEST_F(CoordinatorEvaluationsTest, TheBestCheckpointIsKept) {
  options_.job.mutable_checkpoint()->mutable_keep_best()->set_metric("loss");
  StartTraining();
  chief().Evaluated(Losses({2, 1, 3}), now_);
  TrainTo(10);
  EXPECT_THAT(chief().Kept().best_first, ElementsAre(2, 1, 3));
  EXPECT_EQ(chief().Kept().evaluated_to, 3);
}

TEST_F(CoordinatorEvaluationsTest, TheStatusSaysSinceWhenItWaits) {
  EXPECT_OK(Register(ps0_));
  Tick();
  EXPECT_THAT(chief().Status(now_).missing_task(), Contains("ps/1"));
  Pass(absl::Seconds(8), {ps0_});
  EXPECT_EQ(chief().Status(now_).waited().seconds(), 8);
  ASSERT_OK(Register(ps1_));
  Tick();
  EXPECT_THAT(chief().Status(now_).missing_task(), IsEmpty());
  EXPECT_FALSE(chief().Status(now_).has_waited());
}

// The coordinator of a job whose evaluations have a max_lag.
class CoordinatorLagTest : public CoordinatorTest {
 protected:
  CoordinatorLagTest() {
    options_.job.mutable_checkpoint()->set_every_steps(1000);
    job::EvaluationPolicy& policy = *options_.job.mutable_evaluation();
    policy.set_every_steps(20);
    policy.set_max_lag(0);
    options_.worker_timeout = absl::Seconds(60);
  }

  // Makes worker 0 do all steps that it is granted; returns how many it has
  // done.
  int64_t TrainAll(int64_t completed) {
    while (true) {
      const auto claim = Claim(worker0_, completed, 1000);
      EXPECT_OK(claim.status());
      if (!claim.ok() || claim->granted_steps() <= completed) return completed;
      completed = claim->granted_steps();
    }
  }
  void WriteCheckpoint(int64_t step) {
    const auto order = NextCheckpoint();
    EXPECT_TRUE(order.manifest.evaluation_due());
    EXPECT_EQ(order.manifest.global_step(), step);
    CheckpointDone(order, absl::OkStatus());
  }
  void Evaluate(int64_t step) {
    chief().Evaluated({Evaluation{.global_step = step}}, now_);
  }
};

TEST_F(CoordinatorLagTest, TrainingStopsAtEachEvaluationUntilItIsThere) {
  StartTraining();
  EXPECT_EQ(TrainAll(0), 20);
  WriteCheckpoint(20);
  EXPECT_EQ(TrainAll(20), 20);
  EXPECT_EQ(chief().Status(now_).awaited_evaluation(), 20);
  const int64_t news = chief().NewsAt(now_).claims;
  Evaluate(20);
  EXPECT_NE(chief().NewsAt(now_).claims, news) << "a claim that waits goes on";
  EXPECT_EQ(TrainAll(20), 40);
  EXPECT_EQ(phase(), wire::TRAINING);
}

TEST_F(CoordinatorLagTest, TheEvaluatorIsNamedOnceTheWaitIsLong) {
  StartTraining();
  TrainAll(0);
  WriteCheckpoint(20);
  Tick();
  EXPECT_THAT(chief().Status(now_).awaited_task(), IsEmpty());
  Pass(absl::Seconds(6), everyone_);
  EXPECT_THAT(chief().Status(now_).awaited_task(), ElementsAre("evaluator/0"));
  EXPECT_GE(chief().Status(now_).evaluation_waited().seconds(), 5);
  EXPECT_THAT(TakeWarnings(), IsEmpty());
}

TEST_F(CoordinatorLagTest, AnEvaluatorThatNeverCameDoesNotHoldUpTheJob) {
  StartTraining();
  TrainAll(0);
  WriteCheckpoint(20);
  Pass(absl::Seconds(64), everyone_);
  EXPECT_THAT(
      TakeWarnings(),
      ElementsAre(HasSubstr("no evaluation of step 20 came within 1m")));
  EXPECT_THAT(chief().Status(now_).awaited_task(),
              Not(Contains("evaluator/0")));
  EXPECT_EQ(TrainAll(20), 100);
  EXPECT_EQ(phase(), wire::FINISHING);
  EXPECT_THAT(TakeWarnings(), IsEmpty());
}

TEST_F(CoordinatorLagTest, SynchronousWorkersAreToldTheLimit) {
  job::Synchronous& mode =
      *options_.job.mutable_parameter_server()->mutable_synchronous();
  mode.set_replicas_to_aggregate(2);
  mode.set_total_replicas(2);
  StartTraining();
  wire::ClaimStepsRequest request;
  *request.mutable_task() = worker0_;
  request.set_completed_steps(20);
  request.set_pushed_steps(20);
  ASSERT_OK_AND_ASSIGN(auto answer, chief().ClaimSteps(request, now_));
  EXPECT_EQ(answer.end_step(), 20);
  WriteCheckpoint(20);
  request.set_assignment_version(answer.assignment_version());
  request.set_end_step(answer.end_step());
  ASSERT_OK_AND_ASSIGN(answer, chief().ClaimSteps(request, now_));
  EXPECT_FALSE(IsNews(request, answer));
  Evaluate(20);
  ASSERT_OK_AND_ASSIGN(answer, chief().ClaimSteps(request, now_));
  EXPECT_EQ(answer.end_step(), 40);
  EXPECT_TRUE(IsNews(request, answer));
}

TEST_F(CoordinatorLagTest, EarlyStoppingEndsTheJobWhereItIsDecided) {
  job::EarlyStopping& policy =
      *options_.job.mutable_end()->mutable_early_stopping();
  policy.set_metric("loss");
  policy.set_mode(job::MIN);
  policy.set_patience(1);
  StartTraining();
  TrainAll(0);
  WriteCheckpoint(20);
  const Evaluation first = {.global_step = 20, .loss = 1};
  chief().Evaluated({first}, now_);
  TrainAll(20);
  WriteCheckpoint(40);
  chief().Evaluated({first, {.global_step = 40, .loss = 2}}, now_);
  EXPECT_EQ(TrainAll(40), 40);
  EXPECT_EQ(phase(), wire::FINISHING);
  EXPECT_EQ(chief().Status(now_).end_step(), 40);
}

TEST_F(CoordinatorLagTest, CheckpointsThatAreNotEvaluatedStay) {
  options_.job.mutable_evaluation()->set_max_lag(2);
  StartTraining();
  const KeptCheckpoints kept = chief().Kept();
  EXPECT_EQ(kept.evaluated_to, -1);
  EXPECT_EQ(kept.awaited, 3);
}

TEST_F(CoordinatorLagTest, WithoutAMaxTheLagIsSeenAndSaidOnce) {
  options_.job.mutable_evaluation()->clear_max_lag();
  StartTraining();
  EXPECT_EQ(TrainAll(0), 100);
  EXPECT_THAT(TakeWarnings(),
              ElementsAre(HasSubstr("evaluations fall behind")));
}

}  // namespace
}  // namespace parasol::coordinator_testing

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "cluster/rpc/proto_duration.h"
#include "coordinator/coordinator.h"
#include "coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"

namespace parasol::coordinator_testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(CoordinatorTest, TheLastStepLeadsToTheFinalCheckpointAndToComplete) {
  StartTraining();
  TrainTo(100);
  EXPECT_EQ(phase(), wire::FINISHING);
  const auto order = NextCheckpoint();
  EXPECT_TRUE(order.manifest.final());
  EXPECT_EQ(order.manifest.global_step(), 100);
  CheckpointDone(order, absl::OkStatus());
  EXPECT_EQ(phase(), wire::COMPLETE);
  EXPECT_EQ(outcome(), std::nullopt);
  for (const wire::Task& task : everyone_) EXPECT_OK(Leave(task));
  EXPECT_EQ(outcome(), absl::OkStatus());
}

TEST_F(CoordinatorTest, ACompleteJobWaitsBoundedlyForItsTasks) {
  StartTraining();
  TrainTo(100);
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
  Pass(absl::Seconds(29), everyone_);
  EXPECT_EQ(outcome(), std::nullopt);
  Pass(absl::Seconds(1), everyone_);
  EXPECT_EQ(outcome(), absl::OkStatus());
}

TEST_F(CoordinatorTest, ATaskWhoseLeaseRanOutLeavesACompleteJob) {
  StartTraining();
  TrainTo(100);
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
  for (const wire::Task& task : {ps0_, worker1_}) EXPECT_OK(Leave(task));
  // ps/1 and worker/0 stand still. A worker that goes on has seen that the job
  // is complete, and leaves without a heartbeat.
  Pass(absl::Seconds(12), {});
  const wire::JobStatus status = chief().Status(now_);
  EXPECT_THAT(status.staying_task(), ElementsAre("ps/1", "worker/0"));
  EXPECT_EQ(status.staying_limit().seconds(), 18);
  EXPECT_OK(Leave(worker0_));
  EXPECT_EQ(outcome(), std::nullopt);
  EXPECT_OK(Leave(ps1_));
  EXPECT_EQ(outcome(), absl::OkStatus());
}

TEST_F(CoordinatorTest, ACompleteJobAwaitsNoElasticWorkerThatIsLost) {
  options_.has_elastic_workers = true;
  StartTraining();
  Pass(absl::Seconds(12), {ps0_, ps1_, worker0_});
  TrainTo(100);
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
  EXPECT_OK(Leave(ps0_));
  EXPECT_OK(Leave(worker0_));
  EXPECT_EQ(outcome(), std::nullopt) << "ps/1 is there";
  EXPECT_OK(Leave(ps1_));
  EXPECT_EQ(outcome(), absl::OkStatus());
}

TEST_F(CoordinatorTest, StepsOfALostWorkerThatLeavesDoNotCount) {
  StartTraining();
  ASSERT_OK(Claim(worker1_, 0, 1));
  Pass(absl::Seconds(12), {ps0_, ps1_, worker0_});
  EXPECT_OK(Leave(worker1_, /*completed=*/1));
  EXPECT_EQ(chief().Status(now_).global_step(), 0);
  EXPECT_THAT(Leave(worker1_), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CoordinatorTest, AJobMayEndWithItsWorkers) {
  options_.ends_with_workers = true;
  options_.job.mutable_end()->set_steps(int64_t{1} << 50);
  StartTraining();
  EXPECT_EQ(chief().Status(now_).end_step(), 0) << "nobody knows it";
  TrainTo(7);
  ASSERT_OK(Leave(worker0_, 7));
  Pass(absl::Seconds(12), {ps0_, ps1_, worker1_});
  EXPECT_EQ(phase(), wire::TRAINING) << "worker/1 is there";
  // One that comes back has not left.
  const wire::Task again = Task("worker", 0, 22);
  ASSERT_OK(Register(again));
  ASSERT_OK(Leave(worker1_));
  EXPECT_EQ(phase(), wire::TRAINING);
  // Nor has one that is lost.
  Pass(absl::Seconds(12), {ps0_, ps1_});
  EXPECT_EQ(phase(), wire::TRAINING);
  const wire::Task last = Task("worker", 0, 23);
  ASSERT_OK(Register(last));
  ASSERT_OK(Leave(last));
  EXPECT_EQ(phase(), wire::FINISHING);
  const auto order = NextCheckpoint();
  EXPECT_TRUE(order.manifest.final());
  EXPECT_EQ(order.manifest.global_step(), 7);
  CheckpointDone(order, absl::OkStatus());
  EXPECT_EQ(phase(), wire::COMPLETE);
}

// Nobody is awaited who has done steps for another chief.
TEST_F(CoordinatorTest, AResumedJobEndsWithItsWorkersAtOnce) {
  Resume(100);
  options_.ends_with_workers = true;
  options_.job.mutable_end()->set_steps(int64_t{1} << 50);
  RegisterPs();
  RegisterWorkers();
  FinishLoad(NextLoad());
  ASSERT_OK(Leave(worker0_));
  EXPECT_EQ(phase(), wire::TRAINING);
  ASSERT_OK(Leave(worker1_));
  EXPECT_EQ(phase(), wire::FINISHING);
}

TEST_F(CoordinatorTest, AJobThatIsCompleteAlreadySaysSoAndLingers) {
  Resume(100);
  options_.already_complete = true;
  EXPECT_EQ(phase(), wire::COMPLETE);
  EXPECT_EQ(outcome(), std::nullopt);
  ASSERT_OK(Register(worker0_));
  Pass(kCompleteLinger, {worker0_});
  EXPECT_EQ(outcome(), std::nullopt);
  ASSERT_OK(Leave(worker0_));
  EXPECT_EQ(outcome(), absl::OkStatus());
}

TEST_F(CoordinatorTest, ALongerEndTrainsOnFromAFinalCheckpoint) {
  Resume(100);
  options_.job.mutable_end()->set_steps(150);
  RegisterPs();
  RegisterWorkers();
  FinishLoad(NextLoad());
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, 0, 5));
  EXPECT_EQ(claim.granted_steps(), 5);
}

TEST_F(CoordinatorTest, AReportedFailureFailsTheJobWithTheTasksName) {
  StartTraining();
  wire::ReportFailureRequest request;
  *request.mutable_task() = worker1_;
  request.set_message("loss is not finite");
  EXPECT_OK(chief().ReportFailure(request, now_));
  EXPECT_EQ(Heartbeat(ps0_)->failure(), "worker/1: loss is not finite");
  for (const wire::Task& task : everyone_) EXPECT_OK(Leave(task));
  EXPECT_THAT(outcome().value(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          "worker/1: loss is not finite"));
}

TEST_F(CoordinatorTest, ALeftoverProcessCannotFailTheJob) {
  StartTraining();
  ASSERT_OK(Register(Task("worker", 1, 99)));
  ASSERT_OK(Heartbeat(Task("worker", 1, 99)));
  wire::ReportFailureRequest request;
  *request.mutable_task() = worker1_;
  EXPECT_THAT(chief().ReportFailure(request, now_),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(phase(), wire::TRAINING);
}

TEST_F(CoordinatorTest, StepsOfALostWorkerAreGrantedAgain) {
  options_.job.mutable_end()->set_steps(2);
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 1));
  ASSERT_OK(Claim(worker1_, 0, 1));
  Pass(absl::Seconds(10), {ps0_, ps1_, worker0_});
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, 1, 5));
  EXPECT_EQ(claim.granted_steps(), 2);
  EXPECT_THAT(Claim(worker1_, 0, 1), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CoordinatorTest, AChiefThatStoodStillLosesNobody) {
  StartTraining();
  now_ += absl::Minutes(2);
  EXPECT_TRUE(chief().Tick(now_).lost.empty());
  for (const wire::Task& task : everyone_) EXPECT_OK(Heartbeat(task));
}

TEST_F(CoordinatorTest, EpochsEndWhenTheExamplesAreKnown) {
  options_.job.mutable_end()->clear_steps();
  options_.job.mutable_end()->set_epochs(2);
  options_.job.mutable_train()->set_batch_size(10);
  StartTraining();
  EXPECT_EQ(chief().Status(now_).end_step(), 0);
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, 0, 3, /*examples=*/100));
  EXPECT_EQ(claim.granted_steps(), 3);
  EXPECT_EQ(chief().Status(now_).end_step(), 20);
  EXPECT_THAT(Claim(worker1_, 0, 3, /*examples=*/99),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CoordinatorTest, TheStatusHasTheLossOfEachEpochThatHasEnded) {
  options_.job.mutable_train()->set_batch_size(10);
  StartTraining();
  const absl::Time start = now_;
  // Epochs of two steps.
  ASSERT_OK(Claim(worker0_, 0, 4, /*examples=*/20));
  now_ += absl::Milliseconds(50);
  ASSERT_OK(Claim(worker0_, 4, 0, /*examples=*/20));
  EXPECT_EQ(FromProto(chief().Status(now_).trained()), now_ - start);
  ASSERT_EQ(chief().Status(now_).epoch_end_size(), 2);
  EXPECT_FALSE(chief().Status(now_).epoch_end(0).is_complete());
  // The first heartbeat of a new process counts.
  wire::HeartbeatRequest heartbeat;
  *heartbeat.mutable_task() = worker0_;
  heartbeat.set_loss_sum(50);
  heartbeat.set_loss_examples(40);
  for (const double loss_sum : {40., 10.}) {
    wire::EpochLoss* loss = heartbeat.add_epoch_loss();
    loss->set_epoch(heartbeat.epoch_loss_size() - 1);
    loss->set_loss_sum(loss_sum);
    loss->set_examples(20);
  }
  ASSERT_OK(chief().Heartbeat(heartbeat, now_));
  const wire::JobStatus status = chief().Status(now_);
  EXPECT_EQ(status.loss_sum(), 50);
  EXPECT_TRUE(status.epoch_end(1).is_complete());
  EXPECT_EQ(status.epoch_end(0).step(), 2);
  EXPECT_EQ(status.epoch_end(0).loss_sum(), 40);
  EXPECT_EQ(status.epoch_end(0).trained().nanos(), 50'000'000);
  EXPECT_EQ(status.epoch_end(1).loss_sum(), 50);
}

TEST_F(CoordinatorTest, APsThatNeverComesEndsTheChiefAndIsNamed) {
  options_.ps_timeout = absl::Seconds(60);
  ASSERT_OK(Register(ps0_));
  Pass(absl::Seconds(55), {ps0_});
  EXPECT_EQ(outcome(), std::nullopt);
  Pass(absl::Seconds(5), {ps0_});
  EXPECT_THAT(outcome().value(),
              StatusIs(absl::StatusCode::kUnavailable, "waited 1m for ps/1"));
}

TEST_F(CoordinatorTest, APsThatDoesNotComeBackEndsTheChief) {
  StartTraining();
  Pass(absl::Minutes(6), {ps0_, worker0_, worker1_});
  EXPECT_THAT(outcome().value(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ps/1")));
}

TEST_F(CoordinatorTest, TheAbsenceOfAllWorkersEndsTheChief) {
  options_.worker_timeout = absl::Seconds(60);
  StartTraining();
  Pass(absl::Seconds(50), {ps0_, ps1_, worker1_});
  Pass(absl::Seconds(30), {ps0_, ps1_});
  EXPECT_EQ(outcome(), std::nullopt);
  EXPECT_THAT(chief().Status(now_).missing_task(),
              ElementsAre("worker/0", "worker/1"));
  Pass(absl::Seconds(60), {ps0_, ps1_});
  EXPECT_THAT(outcome().value(),
              StatusIs(absl::StatusCode::kUnavailable,
                       "waited 1m for any of worker/0, worker/1"));
}

TEST_F(CoordinatorTest, AStopWritesOneMoreCheckpoint) {
  StartTraining();
  TrainTo(5);
  Stop();
  EXPECT_EQ(outcome(), std::nullopt);
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker1_, 0, 5));
  EXPECT_EQ(claim.granted_steps(), 0);
  const auto order = NextCheckpoint();
  EXPECT_EQ(order.manifest.global_step(), 5);
  EXPECT_TRUE(order.stay) << "nothing that is acknowledged later is in it";
  CheckpointDone(order, absl::OkStatus());
  EXPECT_FALSE(HasOrder());
  EXPECT_THAT(outcome().value(), StatusIs(absl::StatusCode::kCancelled,
                                          HasSubstr("newest checkpoint 5")));
}

TEST_F(CoordinatorTest, TheLastCheckpointOfAStopHasTheStepsThatWorkersHold) {
  StartTraining();
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, 0, 3));
  ASSERT_EQ(claim.granted_steps(), 3);
  chief().RequestStop(now_);
  EXPECT_FALSE(HasOrder());
  ASSERT_OK(Claim(worker0_, 2, 5));
  EXPECT_FALSE(HasOrder());
  EXPECT_EQ(outcome(), std::nullopt);
  ASSERT_OK(Claim(worker0_, 3, 5));
  EXPECT_EQ(NextCheckpoint().manifest.global_step(), 3);
}

TEST_F(CoordinatorTest, AStopWaitsForNoWorkerThatHasLeft) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 3));
  chief().RequestStop(now_);
  EXPECT_FALSE(HasOrder());
  ASSERT_OK(Leave(worker0_, 2));
  EXPECT_EQ(NextCheckpoint().manifest.global_step(), 2);
}

TEST_F(CoordinatorTest, StepsThatWorkersHoldMayHaveBeenDone) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 3));
  Stop();
  // The newest checkpoint is of step 0, too.
  EXPECT_EQ(NextCheckpoint().manifest.global_step(), 0);
}

TEST_F(CoordinatorTest, AStopThatCannotWriteItsCheckpointStillEnds) {
  StartTraining();
  TrainTo(5);
  Stop();
  CheckpointDone(NextCheckpoint(), absl::UnavailableError("x"));
  EXPECT_FALSE(HasOrder());
  EXPECT_THAT(outcome().value(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(CoordinatorTest, AStopBeforeTrainingEndsAtOnce) {
  ASSERT_OK(Register(ps0_));
  chief().RequestStop(now_);
  EXPECT_FALSE(HasOrder());
  EXPECT_THAT(outcome().value(), StatusIs(absl::StatusCode::kCancelled,
                                          HasSubstr("checkpoint none")));
}

TEST_F(CoordinatorTest, AStopDuringFinishingStillCompletesTheJob) {
  StartTraining();
  TrainTo(100);
  chief().RequestStop(now_);
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
  EXPECT_EQ(phase(), wire::COMPLETE);
  Pass(absl::Seconds(5), everyone_);
  EXPECT_EQ(outcome(), absl::OkStatus());
}

TEST_F(CoordinatorTest, LossIsTheMeanOfTheWorkersThatAreAlive) {
  StartTraining();
  wire::HeartbeatRequest request;
  *request.mutable_task() = worker0_;
  request.set_loss(1);
  request.set_examples_per_second(100);
  ASSERT_OK(chief().Heartbeat(request, now_));
  *request.mutable_task() = worker1_;
  request.set_loss(2);
  ASSERT_OK(chief().Heartbeat(request, now_));
  EXPECT_DOUBLE_EQ(chief().Status(now_).loss(), 1.5);
  EXPECT_DOUBLE_EQ(chief().Status(now_).examples_per_second(), 200);
  ASSERT_OK(Leave(worker1_));
  EXPECT_DOUBLE_EQ(chief().Status(now_).loss(), 1);
}

// What a coordinator says of workers that are slow, and of tasks that are not
// there.
class CoordinatorPaceTest : public CoordinatorTest {
 protected:
  // Lets a second go by in which the ps and the evaluator are heard, and each
  // of `workers` has spent `work` of its time in passes of 10 ms, or `times`
  // that.
  void Second(const std::vector<wire::Task>& workers, double slow_times = 1) {
    now_ += absl::Seconds(1);
    for (const wire::Task& ps : {ps0_, ps1_}) EXPECT_OK(Heartbeat(ps));
    for (const wire::Task& worker : workers) {
      const bool is_slow = worker.index() == 1;
      wire::WorkerTotals& totals = totals_[worker.index()];
      totals.set_batches(
          totals.batches() +
          static_cast<int64_t>(is_slow ? 100 / slow_times : 100));
      totals.set_steps(totals.batches());
      totals.mutable_times()->mutable_compute()->set_seconds(
          totals.times().compute().seconds() + 1);
      *totals.mutable_work() = totals.times().compute();
      wire::HeartbeatRequest request;
      *request.mutable_task() = worker;
      *request.mutable_totals() = totals;
      EXPECT_OK(chief().Heartbeat(request, now_));
    }
    Tick();
  }
  std::string WhySlow(int worker) {
    const wire::JobStatus status = chief().Status(now_);
    for (const wire::TaskStatus& task : status.task()) {
      const bool is_it =
          task.task().role() == "worker" && task.task().index() == worker;
      if (is_it) return task.slow();
    }
    return "not there";
  }
  std::vector<std::string> Absent() {
    std::vector<std::string> names;
    const wire::JobStatus status = chief().Status(now_);
    for (const wire::AbsentTask& task : status.absent_task()) {
      names.push_back(task.task());
    }
    return names;
  }

  std::map<int, wire::WorkerTotals> totals_;
};

TEST_F(CoordinatorPaceTest, ASlowWorkerIsNamedUntilItIsLost) {
  StartTraining();
  for (int i = 0; i < 20; ++i) Second({worker0_, worker1_});
  EXPECT_EQ(WhySlow(1), "");
  for (int i = 0; i < 14; ++i) Second({worker0_, worker1_}, /*slow_times=*/4);
  EXPECT_THAT(WhySlow(1), HasSubstr("times the others' 10 ms (compute 100 %)"));
  EXPECT_EQ(WhySlow(0), "");
  ASSERT_OK(Leave(worker1_));
  EXPECT_EQ(WhySlow(1), "");
}

TEST_F(CoordinatorPaceTest, AWorkerThatIsNotHeardIsNamedBeforeItsLeaseEnds) {
  StartTraining();
  for (int i = 0; i < 4; ++i) Second({worker0_});
  EXPECT_EQ(WhySlow(1), "");
  for (int i = 0; i < 2; ++i) Second({worker0_});
  EXPECT_EQ(WhySlow(1), "not heard for 6s");
  for (int i = 0; i < 5; ++i) Second({worker0_});
  EXPECT_EQ(WhySlow(1), "");
  EXPECT_THAT(Absent(), ElementsAre("worker/1"));
}

TEST_F(CoordinatorPaceTest, NobodyIsSlowBesideAPsThatIsNotThere) {
  StartTraining();
  for (int i = 0; i < 20; ++i) Second({worker0_, worker1_});
  ASSERT_OK(Leave(ps0_));
  for (int i = 0; i < 30; ++i) {
    now_ += absl::Seconds(1);
    EXPECT_OK(Heartbeat(ps1_));
    totals_[1].mutable_times()->mutable_pull()->set_seconds(i);
    for (const wire::Task& worker : {worker0_, worker1_}) {
      wire::HeartbeatRequest request;
      *request.mutable_task() = worker;
      *request.mutable_totals() = totals_[worker.index()];
      EXPECT_OK(chief().Heartbeat(request, now_));
    }
    Tick();
    EXPECT_EQ(WhySlow(1), "");
  }
}

TEST_F(CoordinatorPaceTest, AWorkerThatHasNeverComeIsNamedInEveryMode) {
  for (const bool in_step : {false, true}) {
    SCOPED_TRACE(in_step);
    chief_.reset();
    loaded_.clear();
    if (in_step) {
      options_.job.mutable_parameter_server()
          ->mutable_synchronous()
          ->set_total_replicas(2);
      options_.job.mutable_parameter_server()
          ->mutable_synchronous()
          ->set_replicas_to_aggregate(2);
    }
    RegisterPs();
    ASSERT_OK(Register(worker0_));
    FinishLoad(NextLoad());
    CheckpointDone(NextCheckpoint(), absl::OkStatus());
    for (int i = 0; i < 9; ++i) Second({worker0_});
    EXPECT_THAT(Absent(), IsEmpty());
    Second({worker0_});
    EXPECT_THAT(Absent(), ElementsAre("worker/1"));
    ASSERT_OK(Register(worker1_));
    EXPECT_THAT(Absent(), IsEmpty());
  }
}

TEST_F(CoordinatorPaceTest, AnElasticWorkerIsNotMissed) {
  options_.has_elastic_workers = true;
  RegisterPs();
  ASSERT_OK(Register(worker0_));
  FinishLoad(NextLoad());
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
  for (int i = 0; i < 12; ++i) Second({worker0_});
  EXPECT_THAT(Absent(), IsEmpty()) << "it has not come";
  ASSERT_OK(Register(worker1_));
  for (int i = 0; i < 12; ++i) Second({worker0_});
  EXPECT_THAT(Absent(), IsEmpty()) << "its lease has ended";
  // All together are missed.
  for (int i = 0; i < 12; ++i) {
    now_ += absl::Seconds(1);
    for (const wire::Task& ps : {ps0_, ps1_}) EXPECT_OK(Heartbeat(ps));
    Tick();
  }
  ASSERT_OK_AND_ASSIGN(const wire::HeartbeatResponse state, Heartbeat(ps0_));
  EXPECT_THAT(state.missing_task(), ElementsAre("worker/0", "worker/1"));
}

TEST_F(CoordinatorPaceTest, AnEvaluatorIsNamedIfSomebodyExpectsIt) {
  const std::vector<wire::Task> workers = {worker0_, worker1_};
  StartTraining();
  for (int i = 0; i < 20; ++i) Second(workers);
  EXPECT_THAT(Absent(), IsEmpty());
  // One that has been there.
  ASSERT_OK(Register(Task("evaluator", 0, 30)));
  for (int i = 0; i < 11; ++i) Second(workers);
  EXPECT_THAT(Absent(), ElementsAre("evaluator/0"));
  EXPECT_TRUE(chief().Status(now_).absent_task(0).was_there());
}

TEST_F(CoordinatorPaceTest, AListedEvaluatorThatHasNotComeIsNamed) {
  options_.tasks[{"evaluator", 0}] = "e:1";
  StartTraining();
  for (int i = 0; i < 10; ++i) Second({worker0_, worker1_});
  EXPECT_THAT(Absent(), ElementsAre("evaluator/0"));
  EXPECT_FALSE(chief().Status(now_).absent_task(0).was_there());
}

}  // namespace
}  // namespace parasol::coordinator_testing

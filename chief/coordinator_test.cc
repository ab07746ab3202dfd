#include "chief/coordinator.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRun[] = "run-a";

wire::Task Task(const std::string& role, int index, uint64_t incarnation) {
  wire::Task task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}

// Two ps and two workers, whose incarnations are 10 + index and 20 + index,
// an evaluator, and a job of 100 steps with a checkpoint every 10.
class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() {
    job::Job& job = options_.job;
    job.mutable_end()->set_steps(100);
    job.mutable_checkpoint()->set_every_steps(10);
    options_.run_id = kRun;
    options_.shards = {{0, "p0:1", {}}, {1, "p1:1", {}}};
    options_.tasks = {{{"ps", 0}, "p0:1"},
                      {{"ps", 1}, "p1:1"},
                      {{"worker", 0}, "w0:1"},
                      {{"worker", 1}, "w1:1"},
                      {{"evaluator", 0}, ""}};
  }

  Coordinator& chief() {
    if (!chief_) chief_.emplace(options_, now_);
    return *chief_;
  }

  void Resume(int64_t step) {
    options_.resumed.emplace();
    options_.resumed->set_global_step(step);
    options_.resumed->set_run_id(kRun);
  }

  absl::Status Register(const wire::Task& task, const std::string& run = "",
                        int64_t completed = 0) {
    wire::RegisterRequest request;
    *request.mutable_task() = task;
    request.set_run_id(run);
    request.set_completed_steps(completed);
    return chief().Register(request, now_);
  }
  absl::StatusOr<wire::HeartbeatResponse> Heartbeat(const wire::Task& task) {
    wire::HeartbeatRequest request;
    *request.mutable_task() = task;
    return chief().Heartbeat(request, now_);
  }
  absl::StatusOr<wire::ClaimStepsResponse> Claim(const wire::Task& worker,
                                                 int64_t completed,
                                                 int64_t want,
                                                 int64_t examples = 0) {
    wire::ClaimStepsRequest request;
    *request.mutable_task() = worker;
    request.set_completed_steps(completed);
    request.set_want(want);
    request.set_train_examples(examples);
    return chief().ClaimSteps(request, now_);
  }
  absl::Status Leave(const wire::Task& task, int64_t completed = 0) {
    wire::LeaveRequest request;
    *request.mutable_task() = task;
    request.set_completed_steps(completed);
    return chief().Leave(request, now_);
  }
  void RegisterPs(const std::string& run = "") {
    ASSERT_OK(Register(ps0_, run));
    ASSERT_OK(Register(ps1_, run));
  }
  void RegisterWorkers() {
    ASSERT_OK(Register(worker0_));
    ASSERT_OK(Register(worker1_));
  }
  // Time goes by, in which `alive` renew their leases.
  void Pass(absl::Duration duration, const std::vector<wire::Task>& alive) {
    for (absl::Duration step = absl::Seconds(2);
         duration > absl::ZeroDuration(); duration -= step) {
      now_ += std::min(step, duration);
      for (const wire::Task& task : alive) EXPECT_OK(Heartbeat(task));
      chief().Tick(now_);
    }
  }

  // The next order must be of the kind; it is not carried out.
  Coordinator::LoadOrder NextLoad() {
    auto order = chief().NextOrder(now_);
    if (order && std::holds_alternative<Coordinator::LoadOrder>(*order)) {
      return std::get<Coordinator::LoadOrder>(*order);
    }
    ADD_FAILURE() << "no load is ordered";
    return {};
  }
  Coordinator::CheckpointOrder NextCheckpoint() {
    auto order = chief().NextOrder(now_);
    if (order && std::holds_alternative<Coordinator::CheckpointOrder>(*order)) {
      return std::get<Coordinator::CheckpointOrder>(*order);
    }
    ADD_FAILURE() << "no checkpoint is ordered";
    return {};
  }
  bool HasOrder() { return chief().NextOrder(now_).has_value(); }

  void FinishLoad(const Coordinator::LoadOrder& order) {
    for (const auto& target : order.targets) {
      chief().LoadDone(target, absl::OkStatus(), now_);
    }
  }
  // Carries out what a new run needs before it trains.
  void StartTraining() {
    RegisterPs();
    RegisterWorkers();
    FinishLoad(NextLoad());
    chief().CheckpointDone(NextCheckpoint(), absl::OkStatus(), now_);
    ASSERT_EQ(phase(), wire::TRAINING);
  }
  // One worker does all the steps up to `step`.
  void TrainTo(int64_t step) {
    int64_t completed = 0;
    while (completed < step) {
      ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, completed, 1000));
      ASSERT_GT(claim.granted_steps(), completed);
      completed = std::min(step, claim.granted_steps());
    }
    ASSERT_OK(Claim(worker0_, completed, 0));
  }

  wire::JobPhase phase() { return chief().Status().phase(); }
  std::optional<absl::Status> outcome() { return chief().Outcome(now_); }

  const wire::Task ps0_ = Task("ps", 0, 10);
  const wire::Task ps1_ = Task("ps", 1, 11);
  const wire::Task worker0_ = Task("worker", 0, 20);
  const wire::Task worker1_ = Task("worker", 1, 21);
  const std::vector<wire::Task> everyone_ = {ps0_, ps1_, worker0_, worker1_};
  Coordinator::Options options_;
  absl::Time now_ = absl::FromUnixSeconds(1000000);
  std::optional<Coordinator> chief_;
};

TEST_F(CoordinatorTest, WaitsForEveryPsAndNamesThoseThatAreMissing) {
  ASSERT_OK(Register(ps0_));
  ASSERT_OK_AND_ASSIGN(auto state, Heartbeat(ps0_));
  EXPECT_EQ(state.phase(), wire::WAITING_FOR_PS);
  EXPECT_THAT(state.missing_task(), ElementsAre("ps/1"));
  EXPECT_FALSE(HasOrder());
}

TEST_F(CoordinatorTest, ANewRunDrawsInitialValuesAndKeepsThemAtStepZero) {
  RegisterPs();
  EXPECT_EQ(phase(), wire::LOADING);
  const auto load = NextLoad();
  EXPECT_EQ(load.targets.size(), 2u);
  EXPECT_FALSE(load.from_checkpoint);
  FinishLoad(load);
  EXPECT_EQ(phase(), wire::LOADING);
  const auto checkpoint = NextCheckpoint();
  EXPECT_EQ(checkpoint.manifest.global_step(), 0);
  EXPECT_EQ(checkpoint.manifest.run_id(), kRun);
  EXPECT_FALSE(checkpoint.manifest.final());
  chief().CheckpointDone(checkpoint, absl::OkStatus(), now_);
  EXPECT_EQ(phase(), wire::TRAINING);
}

TEST_F(CoordinatorTest, GrantsNothingBeforeTraining) {
  RegisterWorkers();
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, 0, 10));
  EXPECT_EQ(claim.granted_steps(), 0);
  EXPECT_EQ(claim.phase(), wire::WAITING_FOR_PS);
}

TEST_F(CoordinatorTest, PlacementIsUnavailableUntilAllIsLoaded) {
  RegisterPs();
  EXPECT_THAT(chief().GetPlacement(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("ps/0 is being loaded")));
  FinishLoad(NextLoad());
  EXPECT_OK(chief().GetPlacement());
}

TEST_F(CoordinatorTest, AResumedRunLoadsFromTheCheckpointAndTrainsOn) {
  Resume(50);
  RegisterPs();
  const auto load = NextLoad();
  EXPECT_TRUE(load.from_checkpoint);
  FinishLoad(load);
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_EQ(chief().Status().global_step(), 50);
  EXPECT_FALSE(HasOrder());
}

TEST_F(CoordinatorTest, PsThatHoldTheRunKeepTheirValuesWhenTheChiefRestarts) {
  Resume(50);
  RegisterPs(kRun);
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_FALSE(HasOrder());
}

TEST_F(CoordinatorTest, PsThatHoldAnotherRunAreLoaded) {
  Resume(50);
  RegisterPs("run-b");
  EXPECT_EQ(NextLoad().targets.size(), 2u);
}

TEST_F(CoordinatorTest, PsThatHoldTheRunInAnotherShardingAreLoaded) {
  Resume(50);
  options_.same_sharding = false;
  RegisterPs(kRun);
  EXPECT_EQ(NextLoad().targets.size(), 2u);
}

TEST_F(CoordinatorTest, ARestartedChiefCreditsWorkersWithWhatTheyReport) {
  Resume(50);
  auto* progress = options_.resumed->add_worker_progress();
  progress->set_incarnation(worker0_.incarnation());
  progress->set_completed_steps(30);
  RegisterPs(kRun);
  ASSERT_OK(Register(worker0_, "", 34));
  EXPECT_EQ(chief().Status().global_step(), 54);
}

TEST_F(CoordinatorTest, AReturningPsAloneIsLoadedWhileTheOthersGoOn) {
  StartTraining();
  const int64_t version = chief().GetPlacement()->placement_version();
  Pass(absl::Seconds(15), {ps0_, worker0_, worker1_});
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_THAT(chief().Status().missing_task(), ElementsAre("ps/1"));
  EXPECT_OK(Claim(worker0_, 0, 5));
  ASSERT_OK(Register(Task("ps", 1, 99)));
  const auto load = NextLoad();
  ASSERT_EQ(load.targets.size(), 1u);
  EXPECT_EQ(load.targets[0].shard, 1u);
  EXPECT_EQ(load.targets[0].incarnation, 99u);
  EXPECT_TRUE(load.from_checkpoint);
  FinishLoad(load);
  ASSERT_OK_AND_ASSIGN(auto placement, chief().GetPlacement());
  EXPECT_GT(placement.placement_version(), version);
  EXPECT_EQ(placement.shard(1).incarnation(), 99u);
}

TEST_F(CoordinatorTest, APsThatWasReplacedDuringItsLoadIsLoadedAgain) {
  RegisterPs();
  const auto load = NextLoad();
  ASSERT_OK(Register(Task("ps", 1, 99)));
  chief().LoadDone(load.targets[0], absl::OkStatus(), now_);
  chief().LoadDone(load.targets[1], absl::InvalidArgumentError("x"), now_);
  EXPECT_EQ(phase(), wire::LOADING);
  EXPECT_EQ(NextLoad().targets[0].incarnation, 99u);
}

TEST_F(CoordinatorTest, AFailedLoad) {
  struct Case {
    std::string name;
    absl::Status status;
    wire::JobPhase want;
  };
  const Case cases[] = {
      {"gone for now", absl::UnavailableError("x"), wire::LOADING},
      {"too slow", absl::DeadlineExceededError("x"), wire::LOADING},
      {"no checkpoint is left", absl::DataLossError("x"), wire::FAILED},
      {"too large", absl::ResourceExhaustedError("x"), wire::FAILED},
      {"not acceptable", absl::InvalidArgumentError("x"), wire::FAILED},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    chief_.reset();
    RegisterPs();
    chief().LoadDone(NextLoad().targets[1], c.status, now_);
    EXPECT_EQ(phase(), c.want);
    EXPECT_FALSE(HasOrder()) << "at once";
    now_ += absl::Seconds(1);
    EXPECT_EQ(HasOrder(), c.want == wire::LOADING);
  }
}

TEST_F(CoordinatorTest, ALoadThatNeverSucceedsEndsTheChief) {
  RegisterPs();
  for (int i = 0; i < Coordinator::kMaxLoadFailures; ++i) {
    chief().LoadDone({1, 11}, absl::UnavailableError("no route"), now_);
  }
  EXPECT_THAT(outcome().value(), StatusIs(absl::StatusCode::kUnavailable,
                                          HasSubstr("ps/1: no route")));
}

TEST_F(CoordinatorTest, CheckpointsFollowTheSchedule) {
  StartTraining();
  TrainTo(9);
  EXPECT_FALSE(HasOrder());
  TrainTo(12);
  const auto order = NextCheckpoint();
  EXPECT_EQ(order.manifest.global_step(), 12);
  ASSERT_EQ(order.manifest.worker_progress_size(), 2);
  EXPECT_EQ(order.manifest.worker_progress(0).completed_steps(), 12);
  chief().CheckpointDone(order, absl::OkStatus(), now_);
  EXPECT_FALSE(HasOrder());
  EXPECT_EQ(chief().newest_checkpoint(), 12);
}

TEST_F(CoordinatorTest, NoCheckpointWhileAShardIsAway) {
  StartTraining();
  Pass(absl::Seconds(15), {ps0_, worker0_, worker1_});
  TrainTo(12);
  EXPECT_FALSE(HasOrder());
}

TEST_F(CoordinatorTest, TrainingGoesOnAfterAFailedCheckpoint) {
  StartTraining();
  TrainTo(10);
  for (int i = 0; i < 2 * Coordinator::kMaxCheckpointFailures; ++i) {
    chief().CheckpointDone(NextCheckpoint(),
                           absl::ResourceExhaustedError("disk full"), now_);
    EXPECT_FALSE(HasOrder());
    Pass(absl::Seconds(35), everyone_);
  }
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_EQ(outcome(), std::nullopt);
}

TEST_F(CoordinatorTest, TheFirstCheckpointMustSucceedInTheEnd) {
  RegisterPs();
  FinishLoad(NextLoad());
  for (int i = 0; i < Coordinator::kMaxCheckpointFailures; ++i) {
    EXPECT_EQ(phase(), wire::LOADING);
    chief().CheckpointDone(NextCheckpoint(),
                           absl::ResourceExhaustedError("disk full"), now_);
    Pass(absl::Seconds(35), {ps0_, ps1_});
  }
  EXPECT_EQ(phase(), wire::FAILED);
  EXPECT_THAT(chief().Status().failure(), HasSubstr("disk full"));
}

TEST_F(CoordinatorTest, TheLastStepLeadsToTheFinalCheckpointAndToComplete) {
  StartTraining();
  TrainTo(100);
  EXPECT_EQ(phase(), wire::FINISHING);
  const auto order = NextCheckpoint();
  EXPECT_TRUE(order.manifest.final());
  EXPECT_EQ(order.manifest.global_step(), 100);
  chief().CheckpointDone(order, absl::OkStatus(), now_);
  EXPECT_EQ(phase(), wire::COMPLETE);
  EXPECT_EQ(outcome(), std::nullopt);
  for (const wire::Task& task : everyone_) EXPECT_OK(Leave(task));
  EXPECT_EQ(outcome(), absl::OkStatus());
}

TEST_F(CoordinatorTest, ACompleteJobWaitsBoundedlyForItsTasks) {
  StartTraining();
  TrainTo(100);
  chief().CheckpointDone(NextCheckpoint(), absl::OkStatus(), now_);
  Pass(absl::Seconds(29), everyone_);
  EXPECT_EQ(outcome(), std::nullopt);
  Pass(absl::Seconds(1), everyone_);
  EXPECT_EQ(outcome(), absl::OkStatus());
}

TEST_F(CoordinatorTest, AFinalCheckpointThatNeverSucceedsFailsTheJob) {
  StartTraining();
  TrainTo(100);
  for (int i = 0; i < Coordinator::kMaxCheckpointFailures; ++i) {
    chief().CheckpointDone(NextCheckpoint(),
                           absl::UnavailableError("read-only"), now_);
    Pass(absl::Seconds(35), everyone_);
  }
  EXPECT_EQ(phase(), wire::FAILED);
  EXPECT_THAT(outcome().value(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("step 100"), HasSubstr("read-only"))));
}

TEST_F(CoordinatorTest, AJobThatIsCompleteAlreadySaysSoAndLingers) {
  Resume(100);
  options_.already_complete = true;
  EXPECT_EQ(phase(), wire::COMPLETE);
  EXPECT_EQ(outcome(), std::nullopt);
  ASSERT_OK(Register(worker0_));
  Pass(Coordinator::kCompleteLinger, {worker0_});
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
  EXPECT_TRUE(chief().Tick(now_).empty());
  for (const wire::Task& task : everyone_) EXPECT_OK(Heartbeat(task));
}

TEST_F(CoordinatorTest, EpochsEndWhenTheExamplesAreKnown) {
  options_.job.mutable_end()->clear_steps();
  options_.job.mutable_end()->set_epochs(2);
  options_.job.mutable_train()->set_batch_size(10);
  StartTraining();
  EXPECT_EQ(chief().Status().end_step(), 0);
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, 0, 3, /*examples=*/100));
  EXPECT_EQ(claim.granted_steps(), 3);
  EXPECT_EQ(chief().Status().end_step(), 20);
  EXPECT_THAT(Claim(worker1_, 0, 3, /*examples=*/99),
              StatusIs(absl::StatusCode::kInvalidArgument));
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
  EXPECT_THAT(chief().Status().missing_task(),
              ElementsAre("worker/0", "worker/1"));
  Pass(absl::Seconds(60), {ps0_, ps1_});
  EXPECT_THAT(outcome().value(),
              StatusIs(absl::StatusCode::kUnavailable,
                       "waited 1m for any of worker/0, worker/1"));
}

TEST_F(CoordinatorTest, AStopWritesOneMoreCheckpoint) {
  StartTraining();
  TrainTo(5);
  chief().RequestStop(now_);
  EXPECT_EQ(outcome(), std::nullopt);
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker1_, 0, 5));
  EXPECT_EQ(claim.granted_steps(), 0);
  const auto order = NextCheckpoint();
  EXPECT_EQ(order.manifest.global_step(), 5);
  chief().CheckpointDone(order, absl::OkStatus(), now_);
  EXPECT_FALSE(HasOrder());
  EXPECT_THAT(outcome().value(), StatusIs(absl::StatusCode::kCancelled,
                                          HasSubstr("newest checkpoint 5")));
}

TEST_F(CoordinatorTest, AStopThatCannotWriteItsCheckpointStillEnds) {
  StartTraining();
  TrainTo(5);
  chief().RequestStop(now_);
  chief().CheckpointDone(NextCheckpoint(), absl::UnavailableError("x"), now_);
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
  chief().CheckpointDone(NextCheckpoint(), absl::OkStatus(), now_);
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
  EXPECT_DOUBLE_EQ(chief().Status().loss(), 1.5);
  EXPECT_DOUBLE_EQ(chief().Status().examples_per_second(), 200);
  ASSERT_OK(Leave(worker1_));
  EXPECT_DOUBLE_EQ(chief().Status().loss(), 1);
}

}  // namespace
}  // namespace parasol

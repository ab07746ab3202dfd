#include "coordinator/coordinator.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "cluster/trust/process_secret.h"
#include "coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"

namespace parasol::coordinator_testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
  CheckpointDone(checkpoint, absl::OkStatus());
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
  RegisterWorkers();
  EXPECT_THAT(Placement(), StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("ps/0 is being loaded")));
  FinishLoad(NextLoad());
  EXPECT_OK(Placement());
}

TEST_F(CoordinatorTest, AResumedRunLoadsFromTheCheckpointAndTrainsOn) {
  Resume(50);
  RegisterPs();
  const auto load = NextLoad();
  EXPECT_TRUE(load.from_checkpoint);
  FinishLoad(load);
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_EQ(chief().Status(now_).global_step(), 50);
  EXPECT_FALSE(HasOrder());
}

TEST_F(CoordinatorTest, PsThatHoldTheRunKeepTheirValuesWhenTheChiefRestarts) {
  Resume(50);
  RegisterPs(kRun);
  const auto load = NextLoad();
  ASSERT_EQ(load.targets.size(), 2u);
  EXPECT_TRUE(load.targets[0].holds_shard);
  EXPECT_TRUE(load.targets[1].holds_shard);
  FinishLoad(load);
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_FALSE(HasOrder());
}

TEST_F(CoordinatorTest, PsThatHoldAnotherRunAreLoaded) {
  Resume(50);
  RegisterPs("run-b");
  EXPECT_EQ(NextLoad().targets.size(), 2u);
}

TEST_F(CoordinatorTest, PsThatHoldTheRunInAnotherLayoutAreLoaded) {
  Resume(50);
  layout_ = kLayout + 1;
  RegisterPs(kRun);
  const auto load = NextLoad();
  ASSERT_EQ(load.targets.size(), 2u);
  EXPECT_FALSE(load.targets[0].holds_shard);
}

TEST_F(CoordinatorTest, ARestartedChiefCreditsWorkersWithWhatTheyReport) {
  Resume(50);
  auto* progress = options_.resumed->add_worker_progress();
  progress->set_incarnation(worker0_.incarnation());
  progress->set_completed_steps(30);
  BringBackPs();
  ASSERT_OK(Register(worker0_, "", 34));
  EXPECT_EQ(chief().Status(now_).global_step(), 54);
}

TEST_F(CoordinatorTest, AWorkerOfOtherVariablesIsToldAndNotCredited) {
  Resume(50);
  BringBackPs();
  struct Case {
    std::string name;
    std::string run;
    uint64_t layout;
    int64_t want;
  };
  const Case cases[] = {{"another run", "run-b", kLayout, 50},
                        {"another layout", kRun, kLayout + 1, 50},
                        {"these variables", kRun, kLayout, 84}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    wire::RegisterRequest request;
    *request.mutable_task() = worker0_;
    request.set_run_id(c.run);
    request.set_layout(c.layout);
    request.set_completed_steps(34);
    ASSERT_OK_AND_ASSIGN(const auto response, chief().Register(request, now_));
    EXPECT_EQ(response.run_id(), kRun);
    EXPECT_EQ(response.layout(), kLayout);
    EXPECT_EQ(chief().Status(now_).global_step(), c.want);
    EXPECT_EQ(Claim(worker0_, 34, 5).ok(), c.want > 50);
  }
}

TEST_F(CoordinatorTest, ATaskKeepsItsPlaceEpochWithTheNextChief) {
  options_.chief_epoch = 4;
  wire::RegisterRequest request;
  *request.mutable_task() = ps0_;
  ASSERT_OK_AND_ASSIGN(const auto first, chief().Register(request, now_));
  EXPECT_EQ(first.chief_epoch(), 4);
  ASSERT_OK(Register(Task("ps", 0, 99)));
  ASSERT_OK(Heartbeat(Task("ps", 0, 99)));
  const std::map<int, int64_t> recorded = [&] {
    EXPECT_OK(Register(ps1_));
    return NextLoad().ps_epochs;
  }();
  ASSERT_EQ(recorded.size(), 2u);
  EXPECT_GT(recorded.at(0), first.place_epoch());
  // It was replaced, and comes to a chief that has only the record.
  chief_.reset();
  options_.chief_epoch = 5;
  options_.ps_epochs = recorded;
  Resume(50);
  request.set_run_id(kRun);
  request.set_layout(kLayout);
  request.set_place_epoch(first.place_epoch());
  EXPECT_THAT(chief().Register(request, now_),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// A registration of a killed process that was on its way.
TEST_F(CoordinatorTest, ALivePsHasItsPlaceAgainFromADeadOne) {
  StartTraining();
  ASSERT_OK(Register(Task("ps", 1, 99)));
  EXPECT_FALSE(HasOrder()) << "it may be dead";
  EXPECT_THAT(Heartbeat(ps1_), StatusIs(absl::StatusCode::kUnavailable));
  Pass(options_.lease, {ps0_, worker0_, worker1_});
  EXPECT_THAT(Heartbeat(ps1_), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Placement(), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_OK(Register(ps1_, kRun));
  EXPECT_FALSE(HasOrder()) << "it has its values";
  ASSERT_OK_AND_ASSIGN(const auto placement, Placement());
  EXPECT_EQ(placement.shard(1).incarnation(), PublicNumber(ps1_.incarnation()));
}

TEST_F(CoordinatorTest, APsThatIsTakenToBeLoadedAndIsNotIsLoadedAgain) {
  StartTraining();
  loaded_.erase(ps1_.incarnation());
  ASSERT_OK(Heartbeat(ps1_));
  EXPECT_FALSE(HasOrder()) << "sent before the load was answered";
  ASSERT_OK(Heartbeat(ps1_));
  const auto load = NextLoad();
  ASSERT_EQ(load.targets.size(), 1u);
  EXPECT_EQ(load.targets[0].incarnation, ps1_.incarnation());
  EXPECT_FALSE(load.targets[0].holds_shard);
  EXPECT_EQ(phase(), wire::TRAINING);
}

TEST_F(CoordinatorTest, AnswersSayTheRunTheLayoutAndTheChief) {
  options_.chief_epoch = 4;
  StartTraining();
  ASSERT_OK_AND_ASSIGN(const auto state, Heartbeat(worker0_));
  EXPECT_EQ(state.run_id(), kRun);
  EXPECT_EQ(state.layout(), kLayout);
  EXPECT_EQ(state.chief_epoch(), 4);
  ASSERT_OK_AND_ASSIGN(const auto placement, Placement());
  EXPECT_EQ(placement.layout(), kLayout);
}

TEST_F(CoordinatorTest, ACheckpointNamesTheProcessesOfItsShards) {
  StartTraining();
  TrainTo(10);
  EXPECT_THAT(NextCheckpoint().incarnations, ElementsAre(10, 11));
}

TEST_F(CoordinatorTest, AReturningPsAloneIsLoadedWhileTheOthersGoOn) {
  StartTraining();
  const int64_t version = Placement()->placement_version();
  Pass(absl::Seconds(15), {ps0_, worker0_, worker1_});
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_THAT(chief().Status(now_).missing_task(), ElementsAre("ps/1"));
  EXPECT_OK(Claim(worker0_, 0, 5));
  ASSERT_OK(Register(Task("ps", 1, 99)));
  const auto load = NextLoad();
  ASSERT_EQ(load.targets.size(), 1u);
  EXPECT_EQ(load.targets[0].shard, 1u);
  EXPECT_EQ(load.targets[0].incarnation, 99u);
  EXPECT_TRUE(load.from_checkpoint);
  FinishLoad(load);
  ASSERT_OK_AND_ASSIGN(auto placement, Placement());
  EXPECT_GT(placement.placement_version(), version);
  EXPECT_EQ(placement.shard(1).incarnation(), PublicNumber(99));
}

TEST_F(CoordinatorTest, APsThatWasReplacedDuringItsLoadIsLoadedAgain) {
  RegisterPs();
  const auto load = NextLoad();
  ASSERT_OK(Register(Task("ps", 1, 99)));
  ASSERT_OK(Heartbeat(Task("ps", 1, 99)));
  LoadDone(load.targets[0], absl::OkStatus());
  LoadDone(load.targets[1], absl::InvalidArgumentError("x"));
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
      {"another process", absl::FailedPreconditionError("x"), wire::LOADING},
      {"no checkpoint is left", absl::DataLossError("x"), wire::FAILED},
      {"too large", absl::ResourceExhaustedError("x"), wire::FAILED},
      {"not acceptable", absl::InvalidArgumentError("x"), wire::FAILED},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    chief_.reset();
    RegisterPs();
    LoadDone(NextLoad().targets[1], c.status);
    EXPECT_EQ(phase(), c.want);
    EXPECT_FALSE(HasOrder()) << "at once";
    now_ += absl::Seconds(1);
    EXPECT_EQ(HasOrder(), c.want == wire::LOADING);
  }
}

TEST_F(CoordinatorTest, ALoadThatNeverSucceedsEndsTheChief) {
  RegisterPs();
  for (int i = 0; i < ShardLoads::kMaxFailures; ++i) {
    EXPECT_FALSE(outcome().has_value());
    // Both failures are of one order.
    LoadDone({0, 10}, absl::UnavailableError("no route"));
    LoadDone({1, 11}, absl::UnavailableError("no route"));
    now_ += absl::Seconds(1);
  }
  EXPECT_THAT(outcome().value(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no route")));
}

TEST_F(CoordinatorTest, ALoadThatFailedIsTheTroubleUntilOneSucceeds) {
  RegisterPs();
  const LoadOrder order = NextLoad();
  LoadDone({1, 11}, absl::UnavailableError("can't read /c: Stale"));
  EXPECT_EQ(chief().Status(now_).trouble(),
            "can't load ps/1: can't read /c: Stale");
  EXPECT_EQ(Heartbeat(ps0_)->trouble(), chief().Status(now_).trouble());
  EXPECT_EQ(phase(), wire::LOADING);
  FinishLoad(order);
  EXPECT_EQ(chief().Status(now_).trouble(), "");
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
  CheckpointDone(order, absl::OkStatus());
  EXPECT_FALSE(HasOrder());
  EXPECT_EQ(chief().NewsAt(now_).newest_checkpoint, 12);
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
  const absl::Time end = now_ + 2 * options_.checkpoint_timeout;
  while (now_ < end) {
    CheckpointDone(NextCheckpoint(), absl::ResourceExhaustedError("disk full"));
    EXPECT_FALSE(HasOrder());
    Pass(absl::Seconds(35), everyone_);
  }
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_EQ(outcome(), std::nullopt);
}

TEST_F(CoordinatorTest, TheFirstCheckpointMustSucceedInTheEnd) {
  RegisterPs();
  FinishLoad(NextLoad());
  const absl::Time give_up = now_ + options_.checkpoint_timeout;
  while (now_ < give_up) {
    EXPECT_EQ(phase(), wire::LOADING);
    CheckpointDone(NextCheckpoint(), absl::ResourceExhaustedError("disk full"));
    Pass(absl::Seconds(35), {ps0_, ps1_});
  }
  CheckpointDone(NextCheckpoint(), absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(phase(), wire::FAILED);
  EXPECT_THAT(chief().Status(now_).failure(), HasSubstr("disk full"));
}

// An old chief may go on before it sees that it was replaced: what it knows is
// no ground to end a task.
TEST_F(CoordinatorTest, ATaskThatHasHeardOfANewerChiefIsToldToAskThat) {
  options_.chief_epoch = 4;
  RegisterPs();
  RegisterWorkers();
  wire::Task worker = worker0_;
  EXPECT_OK(Heartbeat(worker));
  worker.set_chief_epoch(5);
  const auto is_refused =
      StatusIs(absl::StatusCode::kAborted,
               HasSubstr("worker/0 has heard of chief 5: this one, chief 4"));
  EXPECT_THAT(Register(worker), is_refused);
  EXPECT_THAT(Heartbeat(worker).status(), is_refused);
  EXPECT_THAT(Claim(worker, 7, 1).status(), is_refused);
  EXPECT_THAT(Leave(worker), is_refused);
  wire::ReportFailureRequest failure;
  *failure.mutable_task() = worker;
  EXPECT_THAT(chief().ReportFailure(failure, now_), is_refused);
  EXPECT_NE(phase(), wire::FAILED);
}

TEST_F(CoordinatorTest, AnotherOrderInTheMiddleOfAnEpochIsWarnedOf) {
  options_.job.mutable_train()->set_batch_size(64);
  Resume(25);
  *options_.resumed->mutable_job() = options_.job;
  options_.resumed->mutable_epochs_seen()->set_step(5);
  options_.resumed->mutable_epochs_seen()->set_steps_per_epoch(10);
  options_.job.set_seed(options_.job.seed() + 1);
  EXPECT_THAT(WarningsOf(options_), IsEmpty()) << "two epochs are whole";
  options_.resumed->set_global_step(26);
  EXPECT_THAT(WarningsOf(options_),
              ElementsAre(AllOf(HasSubstr("seed is"),
                                HasSubstr("up to step 26, in the middle"))));
  options_.job = options_.resumed->job();
  EXPECT_THAT(WarningsOf(options_), IsEmpty());
  options_.job.mutable_train()->set_batch_size(32);
  EXPECT_THAT(WarningsOf(options_),
              ElementsAre(HasSubstr("train.batch_size is 32, but was 64")));
  ASSERT_THAT(chief().Status(now_).warning(), SizeIs(1));
  EXPECT_THAT(chief().Status(now_).warning(0), HasSubstr("but was 64"));
}

// Shards of files have more steps than their examples in even batches.
TEST_F(CoordinatorTest, EpochsOfAnUnchangedJobAreNotCountedByItsBatches) {
  options_.job.mutable_train()->set_batch_size(64);
  Resume(25);
  *options_.resumed->mutable_job() = options_.job;
  EXPECT_EQ(GrantsOf(options_).resumed_examples_per_step, 0);
  options_.job.mutable_train()->set_batch_size(32);
  EXPECT_EQ(GrantsOf(options_).resumed_examples_per_step, 64);
}

TEST_F(CoordinatorTest, WhatAPsHasLostIsWarnedOf) {
  RegisterPs();
  RegisterWorkers();
  for (const auto& target : NextLoad().targets) {
    chief().Done(LoadResult{target, absl::OkStatus(),
                            target.shard == 1 ? "9 pushes\nare lost" : ""},
                 now_);
  }
  EXPECT_THAT(chief().Status(now_).warning(),
              ElementsAre(HasSubstr("ps/1: 9 pushes")));
  // Said again, as an answer may be lost.
  chief().Done(LoadResult{{.shard = 1}, absl::OkStatus(), "9 pushes\nare lost"},
               now_);
  EXPECT_THAT(chief().Status(now_).warning(), SizeIs(1));
}

}  // namespace
}  // namespace parasol::coordinator_testing

#include "chief/chief_server.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "base/status_matchers.h"
#include "coordinator/testing/fake_ps.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kRun[] = "run-a";

wire::Task Task(const std::string& role, uint64_t incarnation, int index = 0) {
  wire::Task task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}

// Lets a simulated clock run while it lives.
class RunningClock {
 public:
  explicit RunningClock(SimulatedClock& clock)
      : thread_([this, &clock] {
          while (
              !ended_.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
            clock.Advance(absl::Milliseconds(100));
          }
        }) {}
  ~RunningClock() {
    ended_.Notify();
    thread_.join();
  }

 private:
  absl::Notification ended_;
  std::thread thread_;
};

// A chief of two ps and a worker, with a real checkpoint directory. The clock
// moves only when a test moves it.
class ChiefServerTest : public testing::Test {
 protected:
  ChiefServerTest() {
    std::filesystem::remove_all(directory_);
    Coordinator::Options& options = options_.coordinator;
    options.job.mutable_end()->set_steps(20);
    options.job.mutable_checkpoint()->set_every_steps(10);
    options.run_id = kRun;
    options.shards = {{0, "p0:1", {}}, {1, "p1:1", {}}};
    options.tasks = {
        {{"ps", 0}, "p0:1"}, {{"ps", 1}, "p1:1"}, {{"worker", 0}, "w0:1"}};
  }

  void StartServer() {
    auto store = CheckpointStore::OpenForWriting(directory_);
    ASSERT_OK(store);
    std::vector<std::unique_ptr<PsClient>> clients;
    clients.push_back(ps0_.NewClient());
    clients.push_back(ps1_.NewClient());
    auto executor = std::make_unique<OrderExecutor>(
        options_.coordinator, std::move(clients), *std::move(store),
        OrderExecutor::Directory{.look_at_owner = [this] { return owner_; }});
    server_ = std::make_unique<ChiefServer>(options_, std::move(executor),
                                            clock_, metrics_);
    server_->Start();
  }

  absl::Status Register(const wire::Task& task) {
    wire::RegisterRequest request;
    *request.mutable_task() = task;
    return server_->Register(request).status();
  }
  absl::Status Leave(const wire::Task& task, int64_t completed = 0) {
    wire::LeaveRequest request;
    *request.mutable_task() = task;
    request.set_completed_steps(completed);
    return server_->Leave(request).status();
  }
  // Blocks until the claim is answered.
  absl::StatusOr<wire::ClaimStepsResponse> Claim(
      const wire::ClaimStepsRequest& request) {
    absl::Notification answered;
    absl::StatusOr<wire::ClaimStepsResponse> answer;
    server_->ClaimSteps(request,
                        [&](absl::StatusOr<wire::ClaimStepsResponse> response) {
                          answer = std::move(response);
                          answered.Notify();
                        });
    answered.WaitForNotification();
    return answer;
  }
  wire::JobStatus Status() { return *server_->GetStatus({}); }

  // Moves the clock in small steps, all tasks renewing their leases, until
  // `condition` holds. The server's threads need real time to follow.
  void AdvanceUntil(const std::function<bool()>& condition,
                    const std::vector<wire::Task>& alive) {
    absl::Notification never;
    for (int i = 0; i < 5000 && !condition(); ++i) {
      clock_.Advance(absl::Milliseconds(100));
      for (const wire::Task& task : alive) {
        wire::HeartbeatRequest request;
        *request.mutable_task() = task;
        if (task.role() == "ps") request.set_run_id(kRun);
        server_->Heartbeat(request).IgnoreError();
      }
      never.WaitForNotificationWithTimeout(absl::Milliseconds(2));
    }
    EXPECT_TRUE(condition()) << Status().ShortDebugString();
  }
  void AwaitPhase(wire::JobPhase phase) {
    AdvanceUntil([&] { return Status().phase() == phase; }, everyone_);
  }

  void StartTraining() {
    StartServer();
    for (const wire::Task& task : everyone_) ASSERT_OK(Register(task));
    AwaitPhase(wire::TRAINING);
  }
  // The worker claims and completes steps until the cluster is at `step`.
  void TrainTo(int64_t step) {
    int64_t completed = 0;
    wire::ClaimStepsRequest request;
    *request.mutable_task() = worker_;
    while (true) {
      request.set_completed_steps(completed);
      request.set_want(completed < step ? 1 : 0);
      ASSERT_OK_AND_ASSIGN(auto response, Claim(request));
      if (completed >= step) return;
      ++completed;
    }
  }

  const std::string directory_ = testing::TempDir() + "/chief_server_test";
  const wire::Task ps0_task_ = Task("ps", 10, 0);
  const wire::Task ps1_task_ = Task("ps", 11, 1);
  const wire::Task worker_ = Task("worker", 20);
  const std::vector<wire::Task> everyone_ = {ps0_task_, ps1_task_, worker_};
  absl::Status owner_;  // what the directory says of it
  SimulatedClock clock_;
  MetricsRegistry metrics_;
  FakePs ps0_;
  FakePs ps1_;
  ChiefServer::Options options_;
  std::unique_ptr<ChiefServer> server_;
};

TEST_F(ChiefServerTest, AChiefThatWasReplacedGivesNoPlaces) {
  StartServer();
  EXPECT_OK(Register(worker_));
  owner_ = absl::FailedPreconditionError("/ckpt belongs to chief 7 now");
  EXPECT_THAT(Register(Task("worker", 21)),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("this chief has been replaced")));
  wire::RegisterRequest known;
  *known.mutable_task() = worker_;
  known.set_place_epoch(1);
  EXPECT_OK(server_->Register(known));
}

TEST_F(ChiefServerTest, ANewRunIsLoadedAndKeptBeforeItTrains) {
  StartTraining();
  EXPECT_EQ(ps0_.loads().size(), 1u);
  EXPECT_EQ(Status().checkpoint(), directory_ + "/ckpt-000000000000");
  EXPECT_TRUE(std::filesystem::exists(Status().checkpoint()));
}

TEST_F(ChiefServerTest, ARegistrationTellsTheJobAndTheRun) {
  StartServer();
  wire::RegisterRequest request;
  *request.mutable_task() = worker_;
  ASSERT_OK_AND_ASSIGN(auto response, server_->Register(request));
  EXPECT_EQ(response.job().end().steps(), 20);
  EXPECT_EQ(response.run_id(), kRun);
  EXPECT_EQ(response.heartbeat_interval().seconds(), 1);
  EXPECT_EQ(response.lease().seconds(), 10);
  EXPECT_EQ(response.checkpoint_directory(), directory_);
}

TEST_F(ChiefServerTest, AJobRunsToItsEndAndItsFinalCheckpoint) {
  StartTraining();
  TrainTo(20);
  AwaitPhase(wire::COMPLETE);
  CheckpointStore store(directory_);
  ASSERT_OK_AND_ASSIGN(auto manifest, store.ReadManifest(20));
  EXPECT_TRUE(manifest.final());
  EXPECT_EQ(manifest.run_id(), kRun);
  for (const wire::Task& task : everyone_) EXPECT_OK(Leave(task, 20));
  RunningClock running(clock_);
  EXPECT_OK(server_->Wait());
}

TEST_F(ChiefServerTest, ACheckpointIsTakenWhileTraining) {
  StartTraining();
  TrainTo(10);
  AdvanceUntil(
      [this] { return CheckpointStore(directory_).ListSteps()->back() == 10; },
      everyone_);
  EXPECT_EQ(Status().phase(), wire::TRAINING);
}

TEST_F(ChiefServerTest, AFailedCheckpointIsTriedAgainWhileTrainingGoesOn) {
  StartTraining();
  ps1_.FailSnapshots(absl::ResourceExhaustedError("disk full"));
  TrainTo(10);
  AdvanceUntil([this] { return ps1_.snapshots() >= 3; }, everyone_);
  EXPECT_EQ(Status().phase(), wire::TRAINING);
  EXPECT_EQ(CheckpointStore(directory_).ListSteps()->back(), 0);
  ps1_.FailSnapshots(absl::OkStatus());
  AdvanceUntil(
      [this] { return CheckpointStore(directory_).ListSteps()->back() == 10; },
      everyone_);
}

TEST_F(ChiefServerTest, ALostPsComesBackWithTheNewestCheckpoint) {
  StartTraining();
  AdvanceUntil([this] { return Status().missing_task_size() == 1; },
               {ps0_task_, worker_});
  EXPECT_EQ(Status().missing_task(0), "ps/1");
  ASSERT_OK(Register(Task("ps", 99, 1)));
  wire::GetPlacementRequest placement;
  *placement.mutable_task() = worker_;
  AdvanceUntil([&] { return server_->GetPlacement(placement).ok(); },
               {ps0_task_, worker_, Task("ps", 99, 1)});
  EXPECT_EQ(ps0_.loads().size(), 1u);
  ASSERT_EQ(ps1_.loads().size(), 2u);
  EXPECT_EQ(ps1_.loads()[1].checkpoint(), directory_ + "/ckpt-000000000000");
}

TEST_F(ChiefServerTest, ASnapshotOfALostPsIsCancelled) {
  StartTraining();
  ps1_.Hang();
  TrainTo(10);
  AdvanceUntil([this] { return ps1_.snapshots() == 2; }, everyone_);
  AdvanceUntil([this] { return Status().missing_task_size() == 1; },
               {ps0_task_, worker_});
  // The thread of the orders is free again.
  ASSERT_OK(Register(Task("ps", 99, 1)));
  AdvanceUntil([this] { return ps1_.loads().size() == 2; },
               {ps0_task_, worker_, Task("ps", 99, 1)});
}

TEST_F(ChiefServerTest, AReportedFailureEndsTheJob) {
  StartTraining();
  wire::ReportFailureRequest request;
  *request.mutable_task() = worker_;
  request.set_message("loss is not finite");
  ASSERT_OK(server_->ReportFailure(request));
  for (const wire::Task& task : everyone_) EXPECT_OK(Leave(task));
  RunningClock running(clock_);
  EXPECT_THAT(server_->Wait(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        "worker/0: loss is not finite"));
}

TEST_F(ChiefServerTest, AStopWritesACheckpointAndEndsCancelled) {
  StartTraining();
  TrainTo(5);
  server_->RequestStop();
  server_->RequestStop();
  AdvanceUntil(
      [this] { return CheckpointStore(directory_).ListSteps()->back() == 5; },
      everyone_);
  RunningClock running(clock_);
  EXPECT_THAT(server_->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ChiefServerTest, AStopCutsALoadShort) {
  StartServer();
  ps0_.Hang();
  for (const wire::Task& task : everyone_) ASSERT_OK(Register(task));
  AdvanceUntil([this] { return ps0_.loads().size() == 1; }, everyone_);
  server_->RequestStop();
  RunningClock running(clock_);
  EXPECT_THAT(server_->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ChiefServerTest, AServerThatIsDestroyedMidLoadDoesNotHang) {
  StartServer();
  ps0_.Hang();
  for (const wire::Task& task : everyone_) ASSERT_OK(Register(task));
  AdvanceUntil([this] { return ps0_.loads().size() == 1; }, everyone_);
  server_.reset();
}

// A probe takes as long as a resolver does, and there are few threads for rpcs.
TEST_F(ChiefServerTest, AHeartbeatWaitsForNoProbeHoweverManyLossesItNames) {
  constexpr uint64_t kNumber = 77;
  options_.coordinator.job.mutable_parameter_server()->set_durability(
      job::ParameterServerStrategy::REPLICATE);
  std::atomic<int> probes = 0;
  absl::Notification looks;
  absl::Notification goes_on;
  options_.is_nobody_at = [&](const std::string& address) {
    EXPECT_EQ(address, "p1:1");
    if (++probes == 1) looks.Notify();
    goes_on.WaitForNotification();
    return true;
  };
  StartTraining();
  const auto beat = [&](wire::HeartbeatRequest request,
                        const wire::Task& task) {
    *request.mutable_task() = task;
    request.set_run_id(kRun);
    return server_->Heartbeat(request).value();
  };
  wire::HeartbeatRequest report;
  report.mutable_standby()->mutable_place();
  beat(report, ps1_task_);
  report.mutable_standby()->mutable_place()->set_number(kNumber);
  report.mutable_standby()->mutable_place()->set_task("ps/0");
  ASSERT_EQ(beat(report, ps1_task_).kept_standby(), kNumber);
  wire::HeartbeatRequest flood;
  for (int i = 0; i < 250000; ++i) {
    wire::LostPrimary& lost = *flood.add_lost_primary();
    lost.set_shard(1);
    lost.set_number(kNumber);
  }
  EXPECT_EQ(beat(flood, ps0_task_).act_for_size(), 0);
  looks.WaitForNotification();
  EXPECT_EQ(beat({}, ps0_task_).act_for_size(), 0);
  goes_on.Notify();
  while (beat({}, ps0_task_).act_for_size() == 0) std::this_thread::yield();
  EXPECT_EQ(probes, 1);
}

class ClaimWaitTest : public ChiefServerTest {
 protected:
  ClaimWaitTest() {
    Coordinator::Options& options = options_.coordinator;
    options.job.mutable_parameter_server()
        ->mutable_bounded_staleness()
        ->set_bound(0);
    options.tasks[{"worker", 1}] = "w1:1";
  }

  wire::ClaimStepsRequest WaitingClaim(const wire::Task& worker,
                                       int64_t completed) {
    wire::ClaimStepsRequest request;
    *request.mutable_task() = worker;
    request.set_completed_steps(completed);
    request.set_started_steps(completed);
    request.set_granted_steps(completed);
    request.set_assignment_version(versions_[worker.index()]);
    request.set_want(1);
    request.mutable_wait()->set_seconds(60);
    return request;
  }
  // Both workers are there, and the first one is a step ahead.
  void GetAhead() {
    StartTraining();
    ASSERT_OK(Register(other_));
    ASSERT_OK_AND_ASSIGN(auto first, Claim(WaitingClaim(worker_, 0)));
    ASSERT_EQ(first.granted_steps(), 1);
    versions_[0] = first.assignment_version();
  }

  int64_t versions_[2] = {};
  const wire::Task other_ = Task("worker", 21, 1);
};

TEST_F(ClaimWaitTest, AClaimThatWaitsIsAnsweredWhenTheSlowestHasReported) {
  GetAhead();
  absl::Notification answered;
  std::thread waiter([&] {
    ASSERT_OK_AND_ASSIGN(auto response, Claim(WaitingClaim(worker_, 1)));
    EXPECT_EQ(response.granted_steps(), 2);
    answered.Notify();
  });
  EXPECT_FALSE(answered.WaitForNotificationWithTimeout(absl::Milliseconds(20)));
  ASSERT_OK(Claim(WaitingClaim(other_, 0)));
  wire::ClaimStepsRequest report = WaitingClaim(other_, 1);
  report.clear_wait();
  ASSERT_OK(Claim(report));
  waiter.join();
}

TEST_F(ClaimWaitTest, AClaimWaitsTenSecondsAtMostAndNamesTheSlowest) {
  GetAhead();
  std::thread waiter([&] {
    const absl::Time start = clock_.Now();
    ASSERT_OK_AND_ASSIGN(auto response, Claim(WaitingClaim(worker_, 1)));
    EXPECT_EQ(response.granted_steps(), 1);
    EXPECT_THAT(response.awaited_task(), testing::ElementsAre("worker/1"));
    // Claims that are due at about the same time are answered together.
    EXPECT_GE(clock_.Now() - start,
              ChiefServer::kMaxClaimWait - absl::Milliseconds(20));
  });
  const absl::Time end = clock_.Now() + 2 * ChiefServer::kMaxClaimWait;
  AdvanceUntil([&] { return clock_.Now() >= end; },
               {ps0_task_, ps1_task_, worker_, other_});
  waiter.join();
}

TEST_F(ClaimWaitTest, AClaimThatWaitsHoldsNoThread) {
  GetAhead();
  absl::Notification answered;
  // Returns at once.
  server_->ClaimSteps(WaitingClaim(worker_, 1),
                      [&](absl::StatusOr<wire::ClaimStepsResponse> response) {
                        ASSERT_OK(response);
                        EXPECT_EQ(response->granted_steps(), 2);
                        answered.Notify();
                      });
  ASSERT_OK(Claim(WaitingClaim(other_, 0)));
  wire::ClaimStepsRequest report = WaitingClaim(other_, 1);
  report.clear_wait();
  ASSERT_OK(Claim(report));
  answered.WaitForNotification();
}

TEST_F(ClaimWaitTest, AWorkerThatClaimsAgainHasGivenItsEarlierClaimUp) {
  GetAhead();
  absl::Notification given_up;
  server_->ClaimSteps(WaitingClaim(worker_, 1),
                      [&](absl::StatusOr<wire::ClaimStepsResponse> response) {
                        EXPECT_THAT(response,
                                    StatusIs(absl::StatusCode::kAborted,
                                             HasSubstr("worker/0")));
                        given_up.Notify();
                      });
  absl::Notification answered;
  server_->ClaimSteps(WaitingClaim(worker_, 1),
                      [&](const absl::StatusOr<wire::ClaimStepsResponse>&) {
                        answered.Notify();
                      });
  given_up.WaitForNotification();
  EXPECT_FALSE(answered.HasBeenNotified());
  server_->EndWaits();
  answered.WaitForNotification();
}

TEST_F(ClaimWaitTest, EndWaitsAnswersAtOnce) {
  GetAhead();
  std::thread waiter([&] { EXPECT_OK(Claim(WaitingClaim(worker_, 1))); });
  server_->EndWaits();
  waiter.join();
}

TEST_F(ChiefServerTest, MetricsShowPhaseTasksStepsAndCheckpoints) {
  StartTraining();
  TrainTo(5);
  AdvanceUntil(
      [this] {
        return absl::StrContains(metrics_.Text(),
                                 "parasol_chief_global_step 5");
      },
      everyone_);
  EXPECT_THAT(
      metrics_.Text(),
      AllOf(HasSubstr("parasol_chief_phase{phase=\"training\"} 1"),
            HasSubstr("parasol_chief_live_tasks{role=\"ps\"} 2"),
            HasSubstr("parasol_chief_checkpoints_total{result=\"written\"} 1"),
            HasSubstr("parasol_chief_shard_loads_total{result=\"done\"} 2")));
}

TEST_F(ChiefServerTest, MetricsShowWhatBoundsTheJob) {
  StartTraining();
  const auto shows = [this](const std::string& value) {
    return absl::StrContains(
        metrics_.Text(),
        "parasol_chief_bound{kind=\"stopped\",task=\"ps/1\"} " + value);
  };
  // ps/1 is not heard, for less than its lease.
  std::vector<wire::Task> others = everyone_;
  std::erase_if(others, [](const wire::Task& task) {
    return task.role() == "ps" && task.index() == 1;
  });
  AdvanceUntil([&] { return shows("1"); }, others);
  AdvanceUntil([&] { return shows("0"); }, everyone_);
}

}  // namespace
}  // namespace parasol

#include "cluster/client/chief_session.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/status_matchers.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
bool Never() { return false; }

// Lets a simulated clock run: a tenth of a simulated second per millisecond.
class RunningClock {
 public:
  RunningClock() : thread_([this] { Run(); }) {}
  ~RunningClock() {
    {
      absl::MutexLock lock(&mu_);
      stopping_ = true;
    }
    thread_.join();
  }

  SimulatedClock& clock() { return clock_; }

 private:
  void Run() {
    absl::MutexLock lock(&mu_);
    while (!mu_.AwaitWithTimeout(absl::Condition(&stopping_),
                                 absl::Milliseconds(1))) {
      clock_.Advance(absl::Milliseconds(100));
    }
  }

  SimulatedClock clock_;
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

// A chief in memory, whose answers the test changes; outlives its clients.
class FakeChief {
 public:
  void SetReachable(bool reachable) {
    absl::MutexLock lock(&mu_);
    reachable_ = reachable;
  }
  // Forgets its tasks, as a restarted process has.
  void Restart() {
    absl::MutexLock lock(&mu_);
    registered_ = false;
  }
  // Sets what the answers to registrations say from now on.
  void AnswerRegistrations(const wire::RegisterResponse& answer) {
    absl::MutexLock lock(&mu_);
    answer_ = answer;
  }
  int dropped_connections() {
    absl::MutexLock lock(&mu_);
    return dropped_connections_;
  }
  // Answers every call with this from now on.
  void Refuse(absl::Status refusal) {
    absl::MutexLock lock(&mu_);
    refusal_ = std::move(refusal);
  }
  void SetState(wire::HeartbeatResponse state) {
    absl::MutexLock lock(&mu_);
    state_ = std::move(state);
  }
  void AwaitRegistrations(int count) {
    absl::MutexLock lock(&mu_);
    auto reached = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return registrations_ >= count;
    };
    mu_.Await(absl::Condition(&reached));
  }
  // Names this directory in each registration's answer.
  void SetCheckpointDirectory(std::string directory) {
    absl::MutexLock lock(&mu_);
    checkpoint_directory_ = std::move(directory);
  }
  void AwaitLeaving() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&heard_leaving_));
  }
  wire::RegisterRequest last_registration() {
    absl::MutexLock lock(&mu_);
    return last_registration_;
  }
  int leaves() {
    absl::MutexLock lock(&mu_);
    return leaves_;
  }
  wire::LeaveRequest last_leave() {
    absl::MutexLock lock(&mu_);
    return last_leave_;
  }

  std::unique_ptr<ChiefClient> NewClient() {
    return std::make_unique<Client>(*this);
  }

 private:
  class Client : public ChiefClient {
   public:
    explicit Client(FakeChief& chief) : chief_(chief) {}

    absl::StatusOr<wire::RegisterResponse> Register(
        const wire::RegisterRequest& request) override {
      absl::MutexLock lock(&chief_.mu_);
      absl::Status status = chief_.Answer();
      if (!status.ok()) return status;
      chief_.registered_ = true;
      chief_.last_registration_ = request;
      wire::RegisterResponse response = chief_.answer_;
      response.set_run_id(absl::StrCat("run-", ++chief_.registrations_));
      response.mutable_heartbeat_interval()->set_seconds(1);
      response.set_checkpoint_directory(chief_.checkpoint_directory_);
      response.mutable_job()->mutable_end()->set_steps(100);
      return response;
    }
    absl::StatusOr<wire::HeartbeatResponse> Heartbeat(
        const wire::HeartbeatRequest& request) override {
      absl::MutexLock lock(&chief_.mu_);
      absl::Status status = chief_.Answer();
      if (!status.ok()) return status;
      if (!chief_.registered_) return absl::NotFoundError("worker/1");
      chief_.heard_leaving_ |= request.leaving();
      return chief_.state_;
    }
    void DropConnection() override {
      absl::MutexLock lock(&chief_.mu_);
      ++chief_.dropped_connections_;
    }
    absl::StatusOr<wire::GetPlacementResponse> GetPlacement() override {
      return absl::UnimplementedError("fake");
    }
    absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
        const wire::ClaimStepsRequest& request) override {
      return absl::UnimplementedError("fake");
    }
    absl::Status ReportFailure(
        const wire::ReportFailureRequest& request) override {
      return absl::UnimplementedError("fake");
    }
    absl::Status Leave(const wire::LeaveRequest& request) override {
      absl::MutexLock lock(&chief_.mu_);
      ++chief_.leaves_;
      chief_.last_leave_ = request;
      return absl::OkStatus();
    }
    absl::StatusOr<wire::JobStatus> GetStatus() override {
      return absl::UnimplementedError("fake");
    }
    absl::StatusOr<wire::InspectResponse> Inspect(
        const wire::InspectRequest& request) override {
      return absl::UnimplementedError("fake");
    }

   private:
    FakeChief& chief_;
  };

  absl::Status Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!reachable_) return absl::UnavailableError("chief at h0:2222: refused");
    return refusal_;
  }

  absl::Mutex mu_;
  bool reachable_ ABSL_GUARDED_BY(mu_) = true;
  bool registered_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status refusal_ ABSL_GUARDED_BY(mu_);
  wire::RegisterResponse answer_ ABSL_GUARDED_BY(mu_);
  int dropped_connections_ ABSL_GUARDED_BY(mu_) = 0;
  wire::HeartbeatResponse state_ ABSL_GUARDED_BY(mu_);
  int registrations_ ABSL_GUARDED_BY(mu_) = 0;
  wire::RegisterRequest last_registration_ ABSL_GUARDED_BY(mu_);
  std::string checkpoint_directory_ ABSL_GUARDED_BY(mu_);
  bool heard_leaving_ ABSL_GUARDED_BY(mu_) = false;
  int leaves_ ABSL_GUARDED_BY(mu_) = 0;
  wire::LeaveRequest last_leave_ ABSL_GUARDED_BY(mu_);
};

wire::HeartbeatResponse State(wire::JobPhase phase,
                              std::vector<std::string> missing = {}) {
  wire::HeartbeatResponse state;
  state.set_phase(phase);
  for (std::string& task : missing) state.add_missing_task(std::move(task));
  return state;
}

bool IsTraining(const wire::HeartbeatResponse& state) {
  return state.phase() == wire::TRAINING;
}

class ChiefSessionTest : public testing::Test {
 protected:
  ChiefSessionTest() {
    options_.task.set_role("worker");
    options_.task.set_index(1);
    options_.task.set_incarnation(77);
    options_.chief_timeout = absl::Seconds(30);
  }

  absl::StatusOr<std::unique_ptr<ChiefSession>> Join(
      std::function<bool()> cancelled = nullptr) {
    return ChiefSession::Join(chief_.NewClient(), options_, time_.clock(),
                              metrics_, std::move(cancelled));
  }
  std::unique_ptr<ChiefSession> MustJoin() {
    auto session = Join();
    EXPECT_OK(session);
    return *std::move(session);
  }

  // Returns when the simulated time has gone on by `duration`.
  void AwaitTime(absl::Duration duration) { time_.clock().Pause(duration); }

  RunningClock time_;
  FakeChief chief_;
  MetricsRegistry metrics_;
  ChiefSession::Options options_;
};

TEST_F(ChiefSessionTest, AwaitEndsWhenTheChiefSaysSo) {
  auto session = MustJoin();
  chief_.SetState(State(wire::TRAINING));
  EXPECT_OK(session->Await(IsTraining, absl::Seconds(60)));
  EXPECT_EQ(session->state().phase(), wire::TRAINING);
}

TEST_F(ChiefSessionTest, AwaitThatTimesOutNamesTheMissingTasks) {
  chief_.SetState(State(wire::WAITING_FOR_PS, {"ps/1", "ps/3"}));
  auto session = MustJoin();
  EXPECT_THAT(session->Await(IsTraining, absl::Seconds(25)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("for ps/1, ps/3")));
}

TEST_F(ChiefSessionTest, AChiefThatAnswersAndMissesNobodyIsAwaitedForever) {
  chief_.SetState(State(wire::LOADING));
  auto session = MustJoin();
  std::thread chief([this] {
    AwaitTime(absl::Minutes(10));
    chief_.SetState(State(wire::TRAINING));
  });
  EXPECT_OK(session->Await(IsTraining, absl::Seconds(25)));
  chief.join();
}

TEST_F(ChiefSessionTest, TasksThatAreMissedNowAndThenDoNotEndAWait) {
  chief_.SetState(State(wire::WAITING_FOR_PS, {"ps/1"}));
  auto session = MustJoin();
  std::thread chief([this] {
    AwaitTime(absl::Seconds(200));
    chief_.SetState(State(wire::LOADING));
    AwaitTime(absl::Seconds(200));
    chief_.SetState(State(wire::WAITING_FOR_PS, {"ps/1"}));
    AwaitTime(absl::Seconds(200));
    chief_.SetState(State(wire::TRAINING));
  });
  EXPECT_OK(session->Await(IsTraining, absl::Seconds(300)));
  chief.join();
}

TEST_F(ChiefSessionTest, ALeavingTaskWaitsUntilTheChiefLetsItGo) {
  chief_.SetState(State(wire::TRAINING));
  auto session = MustJoin();
  std::thread chief([this] {
    chief_.AwaitLeaving();
    wire::HeartbeatResponse state = State(wire::TRAINING);
    state.set_may_leave(true);
    chief_.SetState(state);
  });
  EXPECT_OK(session->AwaitLeave(absl::Seconds(60), absl::Seconds(10), Never));
  chief.join();
}

TEST_F(ChiefSessionTest, ALeavingTaskWaitsNoLongerThanItsLimit) {
  chief_.SetState(State(wire::TRAINING));
  auto session = MustJoin();
  EXPECT_THAT(session->AwaitLeave(absl::Seconds(60), absl::Seconds(10), Never),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("1m")));
}

TEST_F(ChiefSessionTest, ALeavingTaskDoesNotWaitForAChiefThatIsGone) {
  chief_.SetState(State(wire::TRAINING));
  auto session = MustJoin();
  chief_.SetReachable(false);
  EXPECT_THAT(session->AwaitLeave(absl::Hours(1), absl::Seconds(10), Never),
              StatusIs(absl::StatusCode::kUnavailable));
  const auto is_saved = [] { return true; };
  EXPECT_OK(session->AwaitLeave(absl::Hours(1), absl::Seconds(10), is_saved));
}

TEST_F(ChiefSessionTest, AChiefThatIsGoneAfterTheLastCheckpointIsTheEnd) {
  const std::string directory = testing::TempDir() + "/session_end";
  std::filesystem::remove_all(directory);
  chief_.SetCheckpointDirectory(directory);
  chief_.SetState(State(wire::FINISHING));
  auto session = MustJoin();
  ASSERT_OK_AND_ASSIGN(auto store, CheckpointStore::OpenForWriting(directory));
  ASSERT_OK_AND_ASSIGN(const std::string working, store.Begin(100));
  durable::CheckpointManifest manifest;
  manifest.set_global_step(100);
  manifest.set_run_id("run-1");
  manifest.set_final(true);
  ASSERT_OK(store.Commit(working, manifest));
  chief_.SetReachable(false);
  EXPECT_OK(session->Await(
      [](const auto& state) { return state.phase() == wire::COMPLETE; },
      absl::Seconds(25)));
  absl::Notification lost;
  session->OnLost([&](absl::Status) { lost.Notify(); });
  session->Stop();
  EXPECT_FALSE(lost.HasBeenNotified());
}

TEST_F(ChiefSessionTest, MissingTasksAreInAMetric) {
  chief_.SetState(State(wire::WAITING_FOR_PS, {"ps/1", "ps/3"}));
  auto session = MustJoin();
  EXPECT_OK(session->Await(
      [](const wire::HeartbeatResponse& state) {
        return state.missing_task_size() == 2;
      },
      absl::Seconds(60)));
  EXPECT_THAT(metrics_.Text(),
              AllOf(HasSubstr("parasol_worker_missing_tasks 2"),
                    HasSubstr("parasol_worker_chief_reachable 1")));
}

TEST_F(ChiefSessionTest, JoinGivesUpAfterChiefTimeoutAndNamesTheChief) {
  chief_.SetReachable(false);
  EXPECT_THAT(Join(), StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("chief at h0:2222"),
                                     HasSubstr("no answer for 30s"))));
}

TEST_F(ChiefSessionTest, JoinEndsWhenItIsCancelled) {
  chief_.SetReachable(false);
  EXPECT_THAT(Join([] { return true; }),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ChiefSessionTest, JoinOfATaskOutsideTheClusterIsRefusedAtOnce) {
  chief_.Refuse(absl::InvalidArgumentError("worker/1 is not in the cluster"));
  EXPECT_THAT(Join(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("worker/1")));
}

TEST_F(ChiefSessionTest, RegistersAgainWithARestartedChief) {
  int64_t completed = 5;
  options_.describe = [&completed](wire::RegisterRequest& request) {
    request.set_completed_steps(completed++);
  };
  chief_.SetState(State(wire::TRAINING));
  auto session = MustJoin();
  chief_.Restart();
  chief_.AwaitRegistrations(2);
  EXPECT_EQ(chief_.last_registration().completed_steps(), 6);
  EXPECT_EQ(chief_.last_registration().task().incarnation(), 77);
  EXPECT_EQ(session->registration().run_id(), "run-1");
}

TEST_F(ChiefSessionTest, PresentsThePlaceEpochToTheNextChief) {
  wire::RegisterResponse answer;
  answer.set_place_epoch(41);
  chief_.AnswerRegistrations(answer);
  auto session = MustJoin();
  EXPECT_EQ(chief_.last_registration().place_epoch(), 0);
  chief_.Restart();
  chief_.AwaitRegistrations(2);
  EXPECT_EQ(chief_.last_registration().place_epoch(), 41);
}

TEST_F(ChiefSessionTest, TheAnswerOfAReplacedChiefCountsAsNone) {
  wire::HeartbeatResponse state = State(wire::WAITING_FOR_PS);
  state.set_chief_epoch(3);
  chief_.SetState(state);
  auto session = MustJoin();
  ASSERT_OK(session->Await([](const auto&) { return true; },
                           absl::InfiniteDuration()));
  state = State(wire::FAILED);
  state.set_chief_epoch(2);
  chief_.SetState(state);
  EXPECT_THAT(session->Await(
                  [](const auto& seen) { return seen.phase() == wire::FAILED; },
                  absl::InfiniteDuration()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("chief 2, which chief 3 has replaced")));
  EXPECT_GT(chief_.dropped_connections(), 0);
}

TEST_F(ChiefSessionTest, AnAnswerThatTheTaskCantGoOnWithEndsTheSession) {
  options_.on_registered = [](const wire::RegisterResponse& first,
                              const wire::RegisterResponse& answer) {
    return answer.run_id() == first.run_id()
               ? absl::OkStatus()
               : absl::UnavailableError("start again");
  };
  auto session = MustJoin();
  chief_.Restart();
  EXPECT_THAT(
      session->Await([](const auto&) { return false; },
                     absl::InfiniteDuration()),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("start again")));
}

TEST_F(ChiefSessionTest, SurvivesAChiefThatIsAwayForLessThanTheTimeout) {
  auto session = MustJoin();
  chief_.SetReachable(false);
  AwaitTime(absl::Seconds(15));
  chief_.Restart();
  chief_.SetReachable(true);
  chief_.SetState(State(wire::TRAINING));
  EXPECT_OK(session->Await(IsTraining, absl::Seconds(60)));
}

TEST_F(ChiefSessionTest, LostAfterChiefTimeoutWithoutAnAnswer) {
  auto session = MustJoin();
  absl::Notification notified;
  absl::Status lost;
  session->OnLost([&](absl::Status status) {
    lost = std::move(status);
    notified.Notify();
  });
  chief_.SetReachable(false);
  EXPECT_THAT(
      session->Await(IsTraining, absl::InfiniteDuration()),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("chief at h0:2222")));
  notified.WaitForNotification();
  EXPECT_THAT(lost, StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ChiefSessionTest, LeftoverIncarnationIsToldToGo) {
  auto session = MustJoin();
  chief_.Refuse(absl::FailedPreconditionError("worker/1 was replaced"));
  EXPECT_THAT(session->Await(IsTraining, absl::InfiniteDuration()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("was replaced")));
}

TEST_F(ChiefSessionTest, OnLostRunsEvenWhenItIsSetAfterTheLoss) {
  auto session = MustJoin();
  chief_.Refuse(absl::FailedPreconditionError("worker/1 was replaced"));
  EXPECT_THAT(session->Await(IsTraining, absl::InfiniteDuration()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  absl::Notification notified;
  session->OnLost([&](absl::Status) { notified.Notify(); });
  notified.WaitForNotification();
}

TEST_F(ChiefSessionTest, LeaveReportsItsStepsOnce) {
  auto session = MustJoin();
  session->Leave(41);
  session->Leave(42);
  EXPECT_EQ(chief_.leaves(), 1);
  EXPECT_EQ(chief_.last_leave().completed_steps(), 41);
}

TEST_F(ChiefSessionTest, ALostSessionDoesNotLeave) {
  auto session = MustJoin();
  chief_.Refuse(absl::FailedPreconditionError("worker/1 was replaced"));
  EXPECT_THAT(session->Await(IsTraining, absl::InfiniteDuration()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  session->Leave(1);
  EXPECT_EQ(chief_.leaves(), 0);
}

TEST_F(ChiefSessionTest, AWaitIsCancelledWhileTheChiefIsAway) {
  options_.chief_timeout = absl::Hours(1);
  auto session = MustJoin();
  chief_.SetReachable(false);
  const absl::Time end = time_.clock().Now() + absl::Seconds(20);
  const auto cancelled = [&] { return time_.clock().Now() > end; };
  EXPECT_THAT(session->Await(IsTraining, absl::InfiniteDuration(), cancelled),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ChiefSessionTest, StopEndsAWaitWithCancelled) {
  auto session = MustJoin();
  std::thread stopper([&session] { session->Stop(); });
  EXPECT_THAT(session->Await(IsTraining, absl::InfiniteDuration()),
              StatusIs(absl::StatusCode::kCancelled));
  stopper.join();
  session->Stop();
}

}  // namespace
}  // namespace parasol

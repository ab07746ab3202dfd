#include "worker/placement_follower.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/client/testing/fake_chief.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

class PlacedChief : public FakeChief {
 public:
  absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest&) override {
    return absl::UnimplementedError("fake");
  }
  std::atomic<int64_t> version = 0;
  std::atomic<int> placements_asked = 0;
  absl::StatusOr<wire::GetPlacementResponse> GetPlacement() override {
    ++placements_asked;
    wire::GetPlacementResponse placement;
    placement.set_run_id("run-a");
    placement.set_layout(5);
    placement.set_placement_version(version);
    return placement;
  }
};

// The session of a job whose placement has version `placement_version`.
class FakeSession : public ChiefSession {
 public:
  explicit FakeSession(int64_t placement_version) {
    registration_.set_run_id("run-a");
    registration_.set_layout(5);
    state_.set_phase(wire::TRAINING);
    state_.set_placement_version(placement_version);
    chief_.version = placement_version;
    state_.set_run_id("run-a");
    state_.set_layout(5);
  }
  // The next answers to heartbeats.
  wire::HeartbeatResponse& next_state() { return state_; }
  const wire::RegisterResponse& registration() const override {
    return registration_;
  }
  ChiefClient& chief() override { return chief_; }
  int placements_asked() const { return chief_.placements_asked; }
  // Changes what the chief says of its placement.
  void set_chief_version(int64_t version) { chief_.version = version; }
  wire::HeartbeatResponse state() const override { return state_; }
  int64_t answers() const override { return answers_; }
  void AnswerAgain() { ++answers_; }
  absl::Status Await(
      std::function<bool(const wire::HeartbeatResponse&)> predicate,
      absl::Duration, const std::function<bool()>& cancelled) override {
    // As long as the chief answers.
    while (!predicate(state_)) {
      if (cancelled()) return absl::CancelledError("stopped");
      clock_.Advance(absl::Seconds(1));
    }
    return absl::OkStatus();
  }
  absl::Status AwaitLeave(absl::Duration, absl::Duration,
                          const std::function<bool()>&) override {
    return absl::UnimplementedError("fake");
  }
  SimulatedClock& clock() { return clock_; }
  void OnLost(std::function<void(absl::Status)>) override {}
  void Leave(int64_t) override {}
  void Stop() override {}

 private:
  PlacedChief chief_;
  SimulatedClock clock_;
  wire::RegisterResponse registration_;
  wire::HeartbeatResponse state_;
  std::atomic<int64_t> answers_ = 1;
};

// What the follower tells a client.
class CountingParameters {
 public:
  absl::Status Update() {
    absl::MutexLock lock(&mu_);
    ++updates_;
    return update_result_;
  }

  void FailUpdates(absl::Status why) {
    absl::MutexLock lock(&mu_);
    update_result_ = std::move(why);
  }

  void ShardsAreLoading(absl::Span<const int> shards) {
    absl::MutexLock lock(&mu_);
    loading_.assign(shards.begin(), shards.end());
    ++news_of_loading_;
  }

  bool AwaitNewsOfLoading(int news, absl::Duration limit) {
    absl::MutexLock lock(&mu_);
    const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return news_of_loading_ >= news;
    };
    return mu_.AwaitWithTimeout(absl::Condition(&are_there), limit);
  }

  void AwaitLoading(const std::vector<int>& shards) {
    absl::MutexLock lock(&mu_);
    const auto are_loading = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return loading_ == shards;
    };
    mu_.Await(absl::Condition(&are_loading));
  }

  bool AwaitUpdates(int updates, absl::Duration limit) {
    absl::MutexLock lock(&mu_);
    const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return updates_ >= updates;
    };
    return mu_.AwaitWithTimeout(absl::Condition(&are_there), limit);
  }

 private:
  absl::Mutex mu_;
  int updates_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<int> loading_ ABSL_GUARDED_BY(mu_);
  int news_of_loading_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status update_result_ ABSL_GUARDED_BY(mu_);
};

PlacementFollower::Options Knowing(int64_t version,
                                   CountingParameters& parameters) {
  return {.known_version = version,
          .on_complete = [] { ADD_FAILURE() << "complete"; },
          .on_lost = [](absl::Status why) { ADD_FAILURE() << why; },
          .on_placement = [&](const auto&) { return parameters.Update(); },
          .on_loading =
              [&](absl::Span<const int> shards) {
                parameters.ShardsAreLoading(shards);
              }};
}

TEST(PlacementFollowerTest, AChangeBeforeItBeganIsNotMissed) {
  FakeSession session(/*placement_version=*/4);
  CountingParameters parameters;
  PlacementFollower follower(Knowing(3, parameters), session, Clock::Real());
  EXPECT_TRUE(parameters.AwaitUpdates(1, absl::Seconds(30)));
}

TEST(PlacementFollowerTest, APlacementIsTakenOverOnce) {
  FakeSession session(/*placement_version=*/4);
  CountingParameters parameters;
  PlacementFollower follower(Knowing(3, parameters), session, Clock::Real());
  EXPECT_FALSE(parameters.AwaitUpdates(2, absl::Seconds(1)));
}

TEST(PlacementFollowerTest, APlacementOlderThanTheStateIsNotTaken) {
  FakeSession session(/*placement_version=*/4);
  session.set_chief_version(3);  // a chief that was replaced
  CountingParameters parameters;
  PlacementFollower follower(Knowing(2, parameters), session, Clock::Real());
  EXPECT_FALSE(parameters.AwaitUpdates(1, absl::Seconds(1)));
  session.set_chief_version(4);
  EXPECT_TRUE(parameters.AwaitUpdates(1, absl::Seconds(30)));
}

TEST(PlacementFollowerTest, TheClientLearnsWhichShardsAreLoading) {
  FakeSession session(/*placement_version=*/3);
  session.next_state().add_loading_shard(2);
  CountingParameters parameters;
  PlacementFollower follower(Knowing(3, parameters), session, Clock::Real());
  parameters.AwaitLoading({2});
}

TEST(PlacementFollowerTest, AChiefThatIsSilentSaysNothingOfLoading) {
  FakeSession session(/*placement_version=*/3);
  session.next_state().add_loading_shard(2);
  CountingParameters parameters;
  PlacementFollower follower(Knowing(3, parameters), session, Clock::Real());
  EXPECT_TRUE(parameters.AwaitNewsOfLoading(1, absl::Seconds(30)));
  EXPECT_FALSE(parameters.AwaitNewsOfLoading(2, absl::Seconds(1)));
  session.AnswerAgain();
  EXPECT_TRUE(parameters.AwaitNewsOfLoading(2, absl::Seconds(30)));
}

TEST(PlacementFollowerTest, AShardThatIsAwayIsLookedForBeforeTheChiefTells) {
  FakeSession session(/*placement_version=*/3);
  session.set_chief_version(4);
  CountingParameters parameters;
  PlacementFollower::Options options = Knowing(3, parameters);
  options.is_away = [] { return true; };
  PlacementFollower follower(std::move(options), session, Clock::Real());
  EXPECT_TRUE(parameters.AwaitUpdates(1, absl::Seconds(30)));
  EXPECT_FALSE(parameters.AwaitUpdates(2, absl::Seconds(1)));
}

// Thousands of workers may wait for it.
TEST(PlacementFollowerTest, AShardThatIsAwayForLongIsLeftToTheChiefToTell) {
  FakeSession session(/*placement_version=*/3);
  CountingParameters parameters;
  std::atomic<int> looks = 0;
  PlacementFollower::Options options = Knowing(3, parameters);
  options.is_away = [&looks] {
    ++looks;
    return true;
  };
  PlacementFollower follower(std::move(options), session, session.clock());
  const auto let_look = [&](int until) {
    while (looks < until) {
      session.clock().Advance(absl::Milliseconds(50));
      std::this_thread::yield();
    }
  };
  let_look(100);
  const int asked = session.placements_asked();
  EXPECT_GT(asked, 0);
  let_look(300);
  EXPECT_EQ(session.placements_asked(), asked);
}

TEST(PlacementFollowerTest, OneThatIsKnownIsNotAskedFor) {
  FakeSession session(/*placement_version=*/4);
  CountingParameters parameters;
  PlacementFollower follower(Knowing(4, parameters), session, Clock::Real());
  EXPECT_FALSE(parameters.AwaitUpdates(1, absl::Seconds(1)));
}

// Follows until the loop can't go on, and returns why.
absl::Status WhyLost(FakeSession& session, CountingParameters& parameters) {
  absl::Notification lost;
  absl::Status why;
  PlacementFollower::Options options = Knowing(3, parameters);
  options.on_lost = [&](absl::Status status) {
    why = std::move(status);
    lost.Notify();
  };
  PlacementFollower follower(std::move(options), session, Clock::Real());
  lost.WaitForNotification();
  return why;
}

TEST(PlacementFollowerTest, AWorkerDoesNotGoOnWithOtherVariables) {
  CountingParameters parameters;
  {
    SCOPED_TRACE("another run");
    FakeSession session(/*placement_version=*/3);
    session.next_state().set_run_id("run-b");
    EXPECT_THAT(WhyLost(session, parameters),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("initialised anew")));
  }
  {
    SCOPED_TRACE("another layout");
    FakeSession session(/*placement_version=*/3);
    session.next_state().set_layout(6);
    EXPECT_THAT(WhyLost(session, parameters),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("placed the variables in another way")));
  }
  EXPECT_FALSE(parameters.AwaitUpdates(1, absl::ZeroDuration()));
}

TEST(PlacementFollowerTest, APlacementThatTheClientRefusesEndsTheWorker) {
  FakeSession session(/*placement_version=*/4);
  CountingParameters parameters;
  parameters.FailUpdates(absl::InvalidArgumentError("split differently"));
  EXPECT_THAT(
      WhyLost(session, parameters),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("split differently")));
}

TEST(WhyRefusedTest, SaysWhatTheWorkerIsToDo) {
  const absl::Status refusal =
      absl::FailedPreconditionError("ps/0 holds run run-b, not run-a");
  {
    SCOPED_TRACE("other variables");
    FakeSession session(3);
    session.next_state().set_layout(6);
    EXPECT_THAT(
        WhyRefused(session, refusal, session.clock(), [] { return false; }),
        StatusIs(absl::StatusCode::kUnavailable, HasSubstr("start again")));
  }
  {
    SCOPED_TRACE("the job has failed");
    FakeSession session(3);
    session.next_state().set_phase(wire::FAILED);
    EXPECT_EQ(
        WhyRefused(session, refusal, session.clock(), [] { return false; }),
        refusal);
    session.next_state().set_failure("worker/1: no such file");
    EXPECT_THAT(
        WhyRefused(session, refusal, session.clock(), [] { return false; }),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 HasSubstr("the job has failed: worker/1: no such file")));
  }
  {
    SCOPED_TRACE("the worker is told to stop");
    FakeSession session(3);
    EXPECT_THAT(
        WhyRefused(session, refusal, session.clock(), [] { return true; }),
        StatusIs(absl::StatusCode::kCancelled));
  }
  {
    SCOPED_TRACE("the chief does not know why");
    FakeSession session(3);
    EXPECT_THAT(
        WhyRefused(session, refusal, session.clock(), [] { return false; }),
        StatusIs(absl::StatusCode::kUnavailable, HasSubstr("holds run run-b")));
  }
}

}  // namespace
}  // namespace parasol

#include "worker/placement_follower.h"

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "worker/testing/fake_chief.h"

namespace parasol {
namespace {

class PlacedChief : public FakeChief {
 public:
  absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest&) override {
    return absl::UnimplementedError("fake");
  }
  absl::StatusOr<wire::GetPlacementResponse> GetPlacement() override {
    return wire::GetPlacementResponse();
  }
};

// The session of a job whose placement has version `placement_version`.
class FakeSession : public ChiefSession {
 public:
  explicit FakeSession(int64_t placement_version) {
    state_.set_phase(wire::TRAINING);
    state_.set_placement_version(placement_version);
  }
  const wire::RegisterResponse& registration() const override {
    return registration_;
  }
  ChiefClient& chief() override { return chief_; }
  wire::HeartbeatResponse state() const override { return state_; }
  absl::Status Await(std::function<bool(const wire::HeartbeatResponse&)>,
                     absl::Duration) override {
    return absl::UnimplementedError("fake");
  }
  absl::Status AwaitLeave(absl::Duration, absl::Duration) override {
    return absl::UnimplementedError("fake");
  }
  void OnLost(std::function<void(absl::Status)>) override {}
  void Leave(int64_t) override {}
  void Stop() override {}

 private:
  PlacedChief chief_;
  wire::RegisterResponse registration_;
  wire::HeartbeatResponse state_;
};

class CountingParameters : public ParameterClient {
 public:
  std::unique_ptr<Pending> Pull(PullRequest) override { return nullptr; }
  std::unique_ptr<Pending> Push(PushRequest) override { return nullptr; }
  absl::Status Update(const wire::GetPlacementResponse&) override {
    absl::MutexLock lock(&mu_);
    ++updates_;
    return absl::OkStatus();
  }
  void Stop() override {}

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
};

PlacementFollower::Options Knowing(int64_t version) {
  return {.known_version = version,
          .is_synchronous = false,
          .on_complete = [] { ADD_FAILURE() << "complete"; },
          .on_lost = [](absl::Status why) { ADD_FAILURE() << why; }};
}

TEST(PlacementFollowerTest, AChangeBeforeItBeganIsNotMissed) {
  FakeSession session(/*placement_version=*/4);
  CountingParameters parameters;
  PlacementFollower follower(Knowing(3), session, parameters, Clock::Real());
  EXPECT_TRUE(parameters.AwaitUpdates(1, absl::Seconds(30)));
}

TEST(PlacementFollowerTest, APlacementIsTakenOverOnce) {
  FakeSession session(/*placement_version=*/4);
  CountingParameters parameters;
  PlacementFollower follower(Knowing(3), session, parameters, Clock::Real());
  EXPECT_FALSE(parameters.AwaitUpdates(2, absl::Seconds(1)));
}

TEST(PlacementFollowerTest, OneThatIsKnownIsNotAskedFor) {
  FakeSession session(/*placement_version=*/4);
  CountingParameters parameters;
  PlacementFollower follower(Knowing(4), session, parameters, Clock::Real());
  EXPECT_FALSE(parameters.AwaitUpdates(1, absl::Seconds(1)));
}

}  // namespace
}  // namespace parasol

#include "ps/standby/standby_keeper.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/client/standby_client.h"
#include "cluster/rpc/follow_message.h"
#include "gtest/gtest.h"
#include "proto/chief.pb.h"
#include "proto/parameter.pb.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/ps_metrics.h"
#include "ps/testing/parameter_server_fixture.h"
#include "ps/testing/requests.h"

// A shard's keeper, a chief that keeps what it is told, and a standby that a
// test may stop.
namespace parasol::parameter_server_testing {
namespace {

constexpr uint64_t kHost = 9;
constexpr uint64_t kNumber = 41;

// The ps that has the standby. Streams to it come one after the other.
class StandbyPs {
 public:
  // From here on, messages are not read: as if the process were stopped.
  void StandStill(bool stands_still) {
    absl::MutexLock lock(&mu_);
    stands_still_ = stands_still;
  }

  void Begin() {
    absl::MutexLock lock(&mu_);
    ++streams_;
    is_cancelled_ = false;
    held_ = std::nullopt;
    told_ = std::nullopt;
  }
  bool Take(const FollowMessage& message) {
    absl::MutexLock lock(&mu_);
    const auto goes_on = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return is_cancelled_ || !stands_still_;
    };
    mu_.Await(absl::Condition(&goes_on));
    if (is_cancelled_) return false;
    if (message.request.state_end()) held_ = 0;
    if (held_) *held_ += static_cast<int64_t>(message.records.size());
    return true;
  }
  bool Tell(wire::FollowResponse& answer) {
    absl::MutexLock lock(&mu_);
    const auto has_answer = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return is_cancelled_ || (held_ && told_ != held_);
    };
    mu_.Await(absl::Condition(&has_answer));
    if (is_cancelled_) return false;
    told_ = held_;
    answer.set_number(kNumber + streams_);
    answer.set_held(*held_);
    return true;
  }
  void Cancel() {
    absl::MutexLock lock(&mu_);
    is_cancelled_ = true;
  }
  int streams() const {
    absl::MutexLock lock(&mu_);
    return streams_;
  }

 private:
  mutable absl::Mutex mu_;
  bool stands_still_ ABSL_GUARDED_BY(mu_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  int streams_ ABSL_GUARDED_BY(mu_) = 0;
  // Records that are held, and told of; nullopt: the state is not there.
  std::optional<int64_t> held_ ABSL_GUARDED_BY(mu_);
  std::optional<int64_t> told_ ABSL_GUARDED_BY(mu_);
};

class FakeCall : public StandbyCall {
 public:
  FakeCall(StandbyPs& ps, Observer& observer) : ps_(ps) {
    ps.Begin();
    answers_ = std::thread([&ps, &observer] {
      wire::FollowResponse answer;
      while (ps.Tell(answer)) observer.OnAnswer(answer);
      observer.OnEnd();
    });
  }
  bool Write(absl::Span<const FollowMessage> messages) override {
    return std::all_of(
        messages.begin(), messages.end(),
        [this](const FollowMessage& message) { return ps_.Take(message); });
  }
  void Cancel() override { ps_.Cancel(); }
  absl::Status Finish() override {
    answers_.join();
    return absl::CancelledError("");
  }

 private:
  StandbyPs& ps_;
  std::thread answers_;
};

class FakeClient : public StandbyClient {
 public:
  explicit FakeClient(StandbyPs& ps) : ps_(ps) {}
  std::unique_ptr<StandbyCall> Follow(
      const wire::StandbyPlace&, StandbyCall::Observer& observer) override {
    return std::make_unique<FakeCall>(ps_, observer);
  }
  absl::Status TakeStandby(
      const wire::StandbyPlace&, const wire::TakeStandbyRequest&,
      absl::Duration,
      absl::FunctionRef<absl::Status(const wire::StandbyState&)>) override {
    return absl::UnimplementedError("");
  }

 private:
  StandbyPs& ps_;
};

class StandbyKeeperTest : public testing::Test {
 protected:
  StandbyKeeperTest()
      : metrics_(registry_),
        client_(standby_),
        keeper_({.task = "ps/0",
                 .heartbeat =
                     [this](const wire::HeartbeatRequest& request) {
                       return Keep(request);
                     },
                 .place_epoch = [] { return 1; }},
                client_, clock_, metrics_),
        server_({.task = "ps/0",
                 .incarnation = kIncarnation,
                 .on_loaded =
                     [this](const std::shared_ptr<ParameterShard>& shard,
                            const wire::LoadRequest& order, bool is_new) {
                       keeper_.Loaded(shard, order, is_new);
                     }},
                clock_, metrics_) {
    wire::LoadRequest order = AdamOrder();
    order.mutable_standby()->set_number(0);
    EXPECT_OK(server_.Load(order).status());
    keeper_.Start();
  }

  absl::StatusOr<wire::HeartbeatResponse> Keep(
      const wire::HeartbeatRequest& request) {
    absl::MutexLock lock(&mu_);
    if (request.standby().has_place() && !request.standby().has_making()) {
      const wire::StandbyPlace& place = request.standby().place();
      kept_ = place.task().empty() ? 0 : place.number();
    }
    wire::HeartbeatResponse answer;
    answer.set_kept_standby(kept_);
    answer.mutable_standby_host()->set_ps_incarnation(kHost);
    answer.mutable_standby_host()->set_task("ps/1");
    return answer;
  }

  // Sends a push, whose answer waits for the standby.
  void Push() {
    const std::string gradient = Floats(kElements, 1);
    const wire::RequestHeader header = PushRequest(1);
    const auto message = ReceivedMessage::Create(header, {ViewOf(gradient)});
    ASSERT_OK(message);
    server_.Execute(*message, 0, [this](const auto& result) {
      EXPECT_OK(result);
      ++acknowledged_;
    });
  }

  void TearDown() override { Stop(); }

  // Stops the keeper.
  void Stop() {
    std::atomic<bool> has_stopped = false;
    std::jthread stop([&] {
      keeper_.Stop();
      has_stopped = true;
    });
    Await([&] { return has_stopped.load(); });
  }

  // Moves the time on until `holds` returns true.
  void Await(absl::FunctionRef<bool()> holds) {
    while (!holds()) {
      clock_.Advance(absl::Milliseconds(20));
      std::this_thread::yield();
    }
  }
  bool IsInSync() const { return metrics_.standby_in_sync.value() == 1; }

  SimulatedClock clock_;
  MetricsRegistry registry_;
  PsMetrics metrics_;
  StandbyPs standby_;
  FakeClient client_;
  absl::Mutex mu_;
  uint64_t kept_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<int> acknowledged_ = 0;
  StandbyKeeper keeper_;
  ParameterServer server_;
};

TEST_F(StandbyKeeperTest, AStandbyThatReadsNothingIsGivenUpAndMadeAgain) {
  Await([&] { return IsInSync(); });
  EXPECT_EQ(standby_.streams(), 1);
  standby_.StandStill(true);
  Push();
  EXPECT_EQ(acknowledged_, 0);
  Await([&] { return !IsInSync(); });
  standby_.StandStill(false);
  Await([&] { return IsInSync() && acknowledged_ == 1; });
  EXPECT_GE(standby_.streams(), 2);
}

TEST_F(StandbyKeeperTest, EndsWhileTheStandbyReadsNothing) {
  standby_.StandStill(true);
  Await([&] { return standby_.streams() == 1; });
  Stop();
  EXPECT_EQ(standby_.streams(), 1);
}

}  // namespace
}  // namespace parasol::parameter_server_testing

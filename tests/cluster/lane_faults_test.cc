// Lanes that break: a relay between worker and ps cuts them at random bytes,
// within a hello, a length, a header or a payload, and by each end. Every push
// is applied once, and every pull brings whole values.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "parameters/client/parameter_client.h"
#include "tests/cluster/cutting_relay.h"
#include "tests/cluster/lane_cluster.h"

ABSL_FLAG(uint64_t, seeds, 8, "Number of random jobs of a kind.");
ABSL_FLAG(uint64_t, first_seed, 1, "Seed of the first one.");

namespace parasol {
namespace {

using Plan = CuttingRelay::Plan;

constexpr size_t kElements = 300'000;
constexpr size_t kRows = 2000;
constexpr int kSteps = 60;
// Number of lanes that are cut in one job; later lanes last, so that it ends.
constexpr size_t kCuts = 16;
constexpr size_t kWidth = PsOnThisMachine::kWidth;

// A cut within the hello would leave the worker to gRPC.
constexpr size_t kHandshakeBytes = 64;

class RandomCuts {
 public:
  // Cuts lanes and, if `calls` is not null, all calls that go through it.
  RandomCuts(uint64_t seed, CuttingRelay* calls)
      : random_(seed), calls_(calls) {}

  Plan operator()(size_t connection) {
    Plan plan;
    plan.piece_bytes = 1 + random_() % (64 << 10);
    if (connection >= kCuts) return plan;
    constexpr CuttingRelay::Cut kWays[] = {CuttingRelay::Cut::kReset,
                                           CuttingRelay::Cut::kClose,
                                           CuttingRelay::Cut::kHalf};
    plan.cut = kWays[random_() % 3];
    plan.to_target = random_() % 2 == 0;
    // Near the beginning, lengths and headers are more of what travels. Not
    // each time: a worker gives up lanes of which three in a row bring nothing.
    const bool is_early = connection % 4 == 0;
    plan.bytes = is_early ? kHandshakeBytes + random_() % 500
                          : 3'000'000 + random_() % 5'000'000;
    // The first cut always resets all calls, so that each job has such a cut.
    if (calls_ != nullptr && (connection == 0 || random_() % 3 == 0)) {
      plan.at_cut = [this] { calls_->ResetAll(); };
      if (random_() % 2 == 0) plan.cut = CuttingRelay::Cut::kNone;
    }
    return plan;
  }

 private:
  std::mt19937_64 random_;
  CuttingRelay* const calls_;
};

// The step that the values show: all are equal but those that a later push has
// changed while the pull was sent again.
void ExpectBetween(absl::Span<const float> values, int least, int most) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  ASSERT_GE(*low, -most);
  ASSERT_LE(*high, -least);
}

// A pull and what its worker had pushed before it.
struct Pulled {
  std::unique_ptr<ParameterClient::Pending> pending;
  std::vector<float> values;
  std::vector<float> rows;
  int pushed = 0;
};

// Pushes ones to all elements and rows, with some in flight, and pulls in
// between, every second time in one operation. Returns when all are done.
void Train(ParameterClient& parameters) {
  const std::vector<float> ones(std::max(kElements, kRows * kWidth), 1);
  std::vector<uint64_t> ids(kRows);
  for (size_t i = 0; i < kRows; ++i) ids[i] = i * i;
  const auto gradient = absl::MakeConstSpan(ones).first(kElements);
  const auto row_gradients = absl::MakeConstSpan(ones).first(kRows * kWidth);
  std::deque<std::unique_ptr<ParameterClient::Pending>> pushes;
  std::deque<Pulled> pulls;
  const auto check = [&](int pushed_now) {
    Pulled& pulled = pulls.front();
    ASSERT_OK(pulled.pending->Wait());
    ExpectBetween(pulled.values, pulled.pushed, pushed_now);
    ExpectBetween(pulled.rows, pulled.pushed, pushed_now);
    pulls.pop_front();
  };
  for (int step = 1; step <= kSteps; ++step) {
    ParameterClient::PushRequest push;
    push.gradients.push_back({0, gradient});
    push.rows.push_back({0, ids, row_gradients});
    Pulled& pulled = pulls.emplace_back();
    pulled.values.resize(kElements);
    pulled.rows.resize(kRows * kWidth);
    pulled.pushed = step;
    ParameterClient::PullRequest pull;
    pull.targets.push_back({0, absl::MakeSpan(pulled.values)});
    pull.rows.push_back({0, ids, absl::MakeSpan(pulled.rows)});
    if (step % 2 == 0) {
      auto [pushed, values] =
          parameters.PushPull(std::move(push), std::move(pull));
      pushes.push_back(std::move(pushed));
      pulled.pending = std::move(values);
    } else {
      pushes.push_back(parameters.Push(std::move(push)));
      pulled.pending = parameters.Pull(std::move(pull));
    }
    if (pushes.size() > 3) {
      ASSERT_OK(pushes.front()->Wait());
      pushes.pop_front();
      ASSERT_NO_FATAL_FAILURE(check(step));
    }
  }
  for (const auto& push : pushes) ASSERT_OK(push->Wait());
  // A pull may be sent again once the last push was applied, not later.
  while (!pulls.empty()) ASSERT_NO_FATAL_FAILURE(check(kSteps));
  Pulled last;
  last.values.resize(kElements);
  last.rows.resize(kRows * kWidth);
  ParameterClient::PullRequest pull;
  pull.targets.push_back({0, absl::MakeSpan(last.values)});
  pull.rows.push_back({0, ids, absl::MakeSpan(last.rows)});
  ASSERT_OK(parameters.Pull(std::move(pull))->Wait());
  ASSERT_THAT(last.values, testing::Each(-kSteps));
  ASSERT_THAT(last.rows, testing::Each(-kSteps));
}

constexpr char kHere[] = "127.0.0.1";
constexpr char kBehindRelay[] = "127.0.0.2";

// A ps whose calls and lanes go through relays, which have its ports.
class PsBehindRelays {
 public:
  using MakePlan = std::function<Plan(size_t)>;

  // `make_lane_plan` is called with the relay of the calls, before any call.
  PsBehindRelays(size_t elements,
                 const std::function<MakePlan(CuttingRelay&)>& make_lane_plan) {
    // Another program may have one of the ports at the relays' host.
    while (calls_ == nullptr || lanes_ == nullptr) {
      lanes_.reset();
      calls_.reset();
      ps_ = std::make_unique<PsOnThisMachine>(
          elements,
          PsOnThisMachine::Hosts{.calls = kBehindRelay, .lanes = kBehindRelay});
      calls_ = CuttingRelay::Start(kHere, kBehindRelay, ps_->call_port(),
                                   [](size_t) { return Plan(); });
      if (calls_ == nullptr) continue;
      lanes_ = CuttingRelay::Start(kHere, kBehindRelay, ps_->lane_port(),
                                   make_lane_plan(*calls_));
    }
  }

  const PsOnThisMachine& operator*() const { return *ps_; }
  const CuttingRelay& calls() const { return *calls_; }
  const CuttingRelay& lanes() const { return *lanes_; }

 private:
  std::unique_ptr<PsOnThisMachine> ps_;
  std::unique_ptr<CuttingRelay> calls_;
  std::unique_ptr<CuttingRelay> lanes_;  // ends first: it may use calls_
};

class LaneFaultsTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(All, LaneFaultsTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "CallsToo" : "LanesAlone";
                         });

TEST_P(LaneFaultsTest, EveryPushIsAppliedOnceHoweverTheyBreak) {
  const uint64_t first = absl::GetFlag(FLAGS_first_seed);
  const uint64_t seeds = absl::GetFlag(FLAGS_seeds);
  size_t cuts = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(seed);
    const PsBehindRelays ps(kElements, [&](CuttingRelay& calls) {
      return RandomCuts(seed, GetParam() ? &calls : nullptr);
    });
    WorkerOnThisMachine worker(*ps, {.shared_memory = false});
    ASSERT_NO_FATAL_FAILURE(Train(*worker));
    EXPECT_EQ(ps.calls().cuts() > 0, GetParam());
    EXPECT_GE(ps.lanes().cuts(), 1u);
    cuts += ps.lanes().cuts();
  }
  // A job whose lanes bring nothing three times in a row goes on in gRPC; a
  // call that is reset while its lane is opened counts, too. Few jobs do.
  EXPECT_GE(cuts, seeds * kCuts / (GetParam() ? 8 : 2));
}

// Pushes once, pulls, and expects both to be whole, with all lanes cut alike.
void ExchangeWithAllCut(const Plan& plan) {
  const PsBehindRelays ps(/*elements=*/1000, [&](CuttingRelay&) {
    return [plan](size_t) { return plan; };
  });
  WorkerOnThisMachine worker(*ps, {.shared_memory = false});
  const std::vector<float> ones(1000, 1);
  std::vector<float> values(1000);
  ASSERT_OK(
      worker->Push(std::vector<ParameterClient::Gradient>{{0, ones}})->Wait());
  ASSERT_OK(worker
                ->Pull(std::vector<ParameterClient::Target>{
                    {0, absl::MakeSpan(values)}})
                ->Wait());
  EXPECT_THAT(values, testing::Each(-1));
  EXPECT_GE(ps.lanes().cuts(), 1u);
}

// Within the hello or the welcome: the worker goes on in gRPC.
TEST(LaneHandshakeTest, AHandshakeThatIsCutLeavesTensorsToGrpc) {
  for (const bool to_target : {true, false}) {
    for (size_t bytes = 0; bytes < (to_target ? 31u : 8u); bytes += 3) {
      SCOPED_TRACE(bytes);
      Plan plan;
      plan.to_target = to_target;
      plan.bytes = bytes;
      ASSERT_NO_FATAL_FAILURE(ExchangeWithAllCut(plan));
    }
  }
}

// As a firewall does that lets a hello through and no frame: the ps ends each
// call in good order, or the lane breaks once it is open.
TEST(LaneHandshakeTest, LanesThatBringNothingLeaveTensorsToGrpc) {
  for (const CuttingRelay::Cut cut :
       {CuttingRelay::Cut::kHalf, CuttingRelay::Cut::kClose}) {
    for (const size_t bytes : {31, 32, 60}) {
      SCOPED_TRACE(bytes);
      Plan plan;
      plan.cut = cut;
      plan.bytes = bytes;
      ASSERT_NO_FATAL_FAILURE(ExchangeWithAllCut(plan));
    }
  }
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}

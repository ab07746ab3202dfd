// Synchronous training at one shard: spec vectors, orders of arrival, workers
// that are replaced, restores, snapshots.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/rpc/protocol_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_shard.h"
#include "ps/testing/requests.h"
#include "ps/testing/synchronous_shard.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

using Gradient = StepGradient;
using Shard = SynchronousShard;

constexpr uint64_t kWorker = 7;
constexpr uint64_t kOther = 8;

// What the spec's worker w pushes.
Gradient OfWorker(int w) {
  return {.v0 = .1f + .2f * w,
          .v1 = .9f + .2f * w,
          .rows = {1},
          .of_rows = {.1f + .2f * w}};
}

auto IsNear(std::vector<float> want) {
  return Pointwise(FloatNear(1e-6), std::move(want));
}

TEST(SynchronousTableTest, TwoWorkersMakeASpecStepTogether) {
  Shard shard(2, 2);
  const auto first = shard.Push(0, 0, OfWorker(0));
  EXPECT_FALSE(first.dense.is_done());
  EXPECT_FALSE(first.rows.is_done());
  EXPECT_THAT(shard.Values(), ElementsAre(0, 1));
  const auto second = shard.Push(0, 1, OfWorker(1));
  EXPECT_TRUE(first.is_done() && second.is_done());
  EXPECT_THAT(shard.Values(), IsNear({-.4f, -1}));
  EXPECT_THAT(shard.Rows({0, 1}), IsNear({4, 3.6f}));
  shard.Push(1, 1, OfWorker(1));
  shard.Push(1, 0, OfWorker(0));
  EXPECT_THAT(shard.Values(), IsNear({-.8f, -3}));
}

TEST(SynchronousTableTest, ABackupWorkerThatIsLateIsDropped) {
  Shard shard(2, 3);
  shard.Push(0, 0, OfWorker(0));
  shard.Push(0, 2, OfWorker(2));
  const auto late = shard.Push(0, 1, OfWorker(1));
  EXPECT_THAT(shard.Values(), IsNear({-.6f, -1.2f}));
  ASSERT_TRUE(late.is_done());
  EXPECT_TRUE(late.dense.Get()->stale);
  EXPECT_TRUE(late.rows.Get()->stale);
  EXPECT_EQ(late.dense.Get()->min_updates, 1);
  shard.Push(1, 0, OfWorker(0));
  shard.Push(1, 1, OfWorker(1));
  EXPECT_THAT(shard.Values(), IsNear({-1, -3.2f}));
}

TEST(SynchronousTableTest, ARowIsDividedByTheGradientsThatTouchIt) {
  Shard shard(2, 2);
  shard.Push(0, 0, {.rows = {5, 6, 5}, .of_rows = {.5f, 1, .5f}});
  shard.Push(0, 1, {.rows = {6}, .of_rows = {2}});
  EXPECT_THAT(shard.Rows({5, 6, 7}), ElementsAre(2, 1, 4));
}

TEST(SynchronousTableTest, PushesOfNoRowsCompleteAStepOfATable) {
  Shard shard(2, 2);
  const auto pull = shard.PullRows({3}, 1);
  shard.Push(0, 0, {});
  EXPECT_FALSE(pull.is_done());
  const auto last = shard.Push(0, 1, {});
  EXPECT_TRUE(last.rows.is_done());
  ASSERT_TRUE(pull.is_done());
  EXPECT_EQ(pull.Get()->max_updates, 1);
  EXPECT_THAT(FloatsOf(pull.Get()->payloads), ElementsAre(4));
}

TEST(SynchronousTableTest, APullWaitsForItsUpdates) {
  Shard shard(1, 1);
  const PendingResult now = shard.Pull(0), next = shard.Pull(1),
                      after = shard.Pull(2);
  EXPECT_TRUE(now.is_done());
  EXPECT_FALSE(next.is_done());
  shard.Push(0, 0, {.v0 = 1});
  ASSERT_TRUE(next.is_done());
  EXPECT_THAT(FloatsOf(next.Get()->payloads), ElementsAre(-2, 1));
  EXPECT_EQ(next.Get()->min_updates, 1);
  EXPECT_EQ(next.Get()->max_updates, 1);
  EXPECT_FALSE(after.is_done());
}

TEST(SynchronousTableTest, AResentGradientCountsOnceAndWaitsWithTheFirst) {
  Shard shard(2, 2);
  const auto lost = shard.Push(0, 0, {.v0 = 1}, kWorker);
  const auto resent = shard.Push(0, 0, {.v0 = 1}, kOther);
  EXPECT_FALSE(resent.is_done());
  shard.Push(0, 1, {.v0 = 1});
  ASSERT_TRUE(lost.is_done() && resent.is_done());
  EXPECT_TRUE(resent.dense.Get()->duplicate);
  EXPECT_FALSE(resent.dense.Get()->stale);
  EXPECT_FALSE(lost.dense.Get()->duplicate);
  const auto after = shard.Push(0, 0, {.v0 = 1}, kOther);
  EXPECT_TRUE(after.dense.Get()->duplicate);
  EXPECT_THAT(shard.Values(), ElementsAre(-2, 1));
}

TEST(SynchronousTableTest, WhatIsNoGradientOfAStepIsRefused) {
  Shard shard(2, 3);
  for (const auto& [step, replica] : std::vector<std::pair<int64_t, int>>{
           {1, 0}, {-1, 0}, {INT64_MAX, 0}, {0, -1}, {0, 3}}) {
    const auto pushed = shard.Push(step, replica, {});
    for (const PendingResult* result : {&pushed.dense, &pushed.rows}) {
      EXPECT_THAT(result->Get().status(),
                  StatusIs(absl::StatusCode::kInvalidArgument))
          << step << " " << replica;
    }
  }
  PendingResult without_step;
  const std::string gradient = Floats(1, 1);
  shard.table().Execute(kWorker, OperationOf(MakePush(1, {MakeRange(0, 0, 1)})),
                        {{ViewOf(gradient)}}, without_step.Done());
  EXPECT_THAT(without_step.Get().status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(shard.Pull(-1).Get().status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SynchronousTableTest, RequestsToTablesAreChecked) {
  Shard shard(1, 1);
  const std::string ids(2 * sizeof(uint64_t), '\0'),
      rows = Floats(2, 1), infinite = Floats(2, INFINITY);
  struct Case {
    std::string name;
    uint32_t table;
    uint32_t rows;
    std::vector<PayloadView> payloads;
    absl::StatusCode want = absl::StatusCode::kInvalidArgument;
  };
  const Case cases[] = {
      {"no such table", 1, 2, {ViewOf(ids), ViewOf(rows)}},
      {"more rows", 0, 3, {ViewOf(ids), ViewOf(rows)}},
      {"fewer rows", 0, 1, {ViewOf(ids), ViewOf(rows)}},
      {"very many rows", 0, UINT32_MAX, {ViewOf(ids), ViewOf(rows)}},
      {"no gradients", 0, 2, {ViewOf(ids)}},
      {"not finite",
       0,
       2,
       {ViewOf(ids), ViewOf(infinite)},
       absl::StatusCode::kOutOfRange},
  };
  for (const Case& c : cases) {
    wire::RowPush push;
    push.set_table(c.table);
    push.set_rows(c.rows);
    push.mutable_sync();
    PendingResult result;
    shard.table().Execute(kWorker, OperationOf(push), c.payloads,
                          result.Done());
    EXPECT_THAT(result.Get().status(), StatusIs(c.want)) << c.name;
  }
  wire::RowPush push_pull;
  push_pull.set_rows(2);
  push_pull.mutable_sync();
  push_pull.set_with_values(true);
  PendingResult refused;
  shard.table().Execute(kWorker, OperationOf(push_pull),
                        {{ViewOf(ids), ViewOf(rows)}}, refused.Done());
  EXPECT_THAT(refused.Get().status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  wire::RowPull pull;
  pull.set_rows(UINT32_MAX);
  PendingResult result;
  shard.table().Execute(/*worker_incarnation=*/1, OperationOf(pull),
                        {{ViewOf(ids)}}, result.Done());
  EXPECT_THAT(result.Get().status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SynchronousTableTest, AbandoningEndsEveryWait) {
  Shard shard(2, 2);
  const auto push = shard.Push(0, 0, {});
  const PendingResult pull = shard.Pull(1), rows = shard.PullRows({1}, 1);
  shard.table().Abandon(absl::UnavailableError("replaced"));
  const PendingResult late = shard.Pull(1);
  for (const PendingResult* result :
       {&push.dense, &push.rows, &pull, &rows, &late}) {
    ASSERT_TRUE(result->is_done());
    EXPECT_THAT(result->Get().status(),
                StatusIs(absl::StatusCode::kUnavailable));
  }
}

TEST(SynchronousTableTest, TheValuesOfAStepLastUntilAGradientOfTheNext) {
  Shard shard(1, 1);
  shard.Push(0, 0, {.v0 = 1, .rows = {5}, .of_rows = {1}});
  const PendingResult before = shard.Pull(0), after = shard.Pull(1),
                      rows_before = shard.PullRows({5, 6}, 0),
                      rows_after = shard.PullRows({5, 6}, 1);
  EXPECT_THAT(FloatsOf(before.Get()->payloads), ElementsAre(0, 1));
  EXPECT_EQ(before.Get()->max_updates, 0);
  EXPECT_THAT(FloatsOf(after.Get()->payloads), ElementsAre(-2, 1));
  EXPECT_EQ(after.Get()->min_updates, 1);
  EXPECT_THAT(FloatsOf(rows_before.Get()->payloads), ElementsAre(4, 4));
  EXPECT_EQ(rows_before.Get()->max_updates, 0);
  EXPECT_THAT(FloatsOf(rows_after.Get()->payloads), ElementsAre(2, 4));
  shard.Push(1, 0, {.v0 = 1});
  EXPECT_EQ(shard.Pull(0).Get()->min_updates, 1);
  EXPECT_EQ(shard.PullRows({5}, 0).Get()->min_updates, 1);
}

// Gradients whose sum depends on the order of addition.
Gradient SomeGradient(int64_t step, int replica) {
  std::mt19937 random(1000 * step + replica);
  std::normal_distribution<float> normal;
  Gradient gradient{.v0 = normal(random), .v1 = normal(random)};
  const int rows = random() % 5;
  for (int i = 0; i < rows; ++i) {
    gradient.rows.push_back(random() % 3);
    gradient.of_rows.push_back(std::ldexp(normal(random), random() % 40));
  }
  return gradient;
}

// Trains with workers that push in a random order, that are replaced by others
// which compute the same, and that push the same gradient again.
std::vector<float> TrainInRandomOrder(int seed) {
  constexpr int kReplicas = 4, kSteps = 12;
  std::mt19937 random(seed);
  Shard shard(kReplicas, kReplicas);
  for (int64_t step = 0; step < kSteps; ++step) {
    std::vector<int> arrivals;
    for (int replica = 0; replica < kReplicas; ++replica) {
      arrivals.insert(arrivals.end(), 1 + random() % 3, replica);
    }
    std::shuffle(arrivals.begin(), arrivals.end(), random);
    std::vector<Shard::Pushed> pushed;
    for (const int replica : arrivals) {
      if (step > 0 && random() % 5 == 0) {
        shard.Push(step - 1, replica, SomeGradient(step - 1, replica));
      }
      pushed.push_back(shard.Push(step, replica, SomeGradient(step, replica),
                                  /*worker=*/1 + random() % 9));
    }
    for (const Shard::Pushed& push : pushed) {
      EXPECT_TRUE(push.is_done());
      EXPECT_FALSE(push.dense.Get()->stale || push.rows.Get()->stale);
    }
  }
  std::vector<float> values = shard.Values();
  const std::vector<float> rows = shard.Rows({0, 1, 2});
  values.insert(values.end(), rows.begin(), rows.end());
  return values;
}

TEST(SynchronousTableTest, TheBitsDoNotDependOnTheOrderNorOnTheWorkers) {
  const std::vector<float> want = TrainInRandomOrder(0);
  for (int seed = 1; seed < 200; ++seed) {
    const std::vector<float> got = TrainInRandomOrder(seed);
    ASSERT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)),
              0)
        << "seed " << seed;
  }
}

// Whether the pull that `start` begins comes, and with exactly `updates`.
bool Comes(int64_t updates, absl::FunctionRef<void(OperationDone)> start) {
  absl::Notification pulled;
  start([&](absl::StatusOr<OperationResult> result) {
    ASSERT_OK(result);
    if (result->read != nullptr) result = result->read();
    EXPECT_EQ(result->min_updates, updates);
    EXPECT_EQ(result->max_updates, updates);
    pulled.Notify();
  });
  return pulled.WaitForNotificationWithTimeout(absl::Minutes(1));
}

// A worker that computes its replica step by step from what it pulls.
void Work(Shard& shard, int replica, int steps) {
  ParameterShard& table = shard.table();
  const uint64_t worker = kWorker + replica;
  for (int64_t step = 0; step < steps; ++step) {
    wire::Pull pull = MakePull({MakeRange(0, 0, 1), MakeRange(1, 0, 1)});
    pull.set_min_updates(step);
    ASSERT_TRUE(Comes(step,
                      [&](OperationDone done) {
                        table.Execute(/*worker_incarnation=*/1,
                                      OperationOf(pull), {}, std::move(done));
                      }))
        << "replica " << replica << " at step " << step;
    wire::RowPull row_pull;
    row_pull.set_min_updates(step);
    ASSERT_TRUE(Comes(step,
                      [&](OperationDone done) {
                        table.Execute(/*worker_incarnation=*/1,
                                      OperationOf(row_pull), {{PayloadView()}},
                                      std::move(done));
                      }))
        << "replica " << replica << " at step " << step;
    shard.Push(step, replica, SomeGradient(step, replica), worker);
  }
}

TEST(SynchronousTableTest, ConcurrentWorkersGiveTheBitsOfOneAfterTheOther) {
  constexpr int kReplicas = 4, kSteps = 100;
  Shard concurrent(kReplicas, kReplicas), serial(kReplicas, kReplicas);
  {
    std::vector<std::jthread> workers;
    for (int replica = 0; replica < kReplicas; ++replica) {
      workers.emplace_back([&, replica] { Work(concurrent, replica, kSteps); });
    }
  }
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int replica = 0; replica < kReplicas; ++replica) {
      serial.Push(step, replica, SomeGradient(step, replica));
    }
  }
  EXPECT_EQ(concurrent.Values(), serial.Values());
  EXPECT_EQ(concurrent.Rows({0, 1, 2}), serial.Rows({0, 1, 2}));
}

}  // namespace
}  // namespace parasol

// What a shard restores from its own checkpoint goes on as if nothing had
// happened, with every optimizer.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/rows/row_form.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "ml/optimizer/optimizer.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"
#include "proto/parameter.pb.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/ps_metrics.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/shard/write_shard.h"
#include "ps/testing/requests.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

using google::protobuf::FieldDescriptor;

constexpr uint64_t kWorker = 7;
constexpr size_t kElements = 100;
constexpr size_t kWidth = 3;
constexpr char kRun[] = "run";

wire::LoadRequest MakeOrder(const FieldDescriptor* kind) {
  wire::LoadRequest order;
  order.set_run_id(kRun);
  order.set_num_shards(1);
  job::Optimizer optimizer = OptimizerOfKind(kind);
  *order.add_part() = MakePart(0, "w", kElements, 0, kElements);
  order.mutable_part(0)->mutable_initializer()->mutable_random_uniform();
  wire::TableSpec& table = *order.add_table();
  table.set_name("t");
  table.set_width(kWidth);
  table.mutable_initializer()->mutable_random_uniform();
  if (optimizer.has_rowwise_adagrad()) {
    order.mutable_optimizer()->mutable_adagrad();
    *table.mutable_optimizer() = std::move(optimizer);
  } else {
    *order.mutable_optimizer() = std::move(optimizer);
  }
  return order;
}

std::string SomeFloats(size_t count, int step) {
  std::vector<float> floats(count);
  for (size_t i = 0; i < count; ++i) floats[i] = std::sin(step + .7f * i);
  return std::string(reinterpret_cast<const char*>(floats.data()),
                     count * sizeof(float));
}

std::string Ids(const std::vector<uint64_t>& ids) {
  return std::string(reinterpret_cast<const char*>(ids.data()),
                     ids.size() * sizeof(uint64_t));
}

// Pushes the dense part and some rows, other rows at each step.
void Push(ParameterShard& table, int step, bool is_synchronous = false) {
  PendingResult dense, sparse;
  wire::Push push = MakePush(2 * step + 1, {MakeRange(0, 0, kElements)});
  wire::RowPush row_push;
  row_push.set_sequence(2 * step + 2);
  row_push.set_rows(2);
  if (is_synchronous) {
    push.mutable_sync()->set_step(step);
    row_push.mutable_sync()->set_step(step);
  }
  const std::string gradient = SomeFloats(kElements, step),
                    ids = Ids({uint64_t(step % 3), 7}),
                    rows = SomeFloats(2 * kWidth, step);
  table.Execute(kWorker, OperationOf(push), {{ViewOf(gradient)}}, dense.Done());
  table.Execute(kWorker, OperationOf(row_push), {{ViewOf(ids), ViewOf(rows)}},
                sparse.Done());
  ASSERT_OK(dense.Get());
  ASSERT_OK(sparse.Get());
}

std::vector<float> Everything(ParameterShard& table) {
  PendingResult dense, sparse;
  table.Execute(/*worker_incarnation=*/1,
                OperationOf(MakePull({MakeRange(0, 0, kElements)})), {},
                dense.Done());
  wire::RowPull pull;
  const std::string ids = Ids({0, 1, 2, 7, 9});
  pull.set_rows(5);
  table.Execute(/*worker_incarnation=*/1, OperationOf(pull), {{ViewOf(ids)}},
                sparse.Done());
  std::vector<float> values = FloatsOf(dense.Get()->payloads);
  const std::vector<float> rows = FloatsOf(sparse.Get()->payloads);
  values.insert(values.end(), rows.begin(), rows.end());
  return values;
}

// The path of a checkpoint that holds what `table` holds.
std::string Dump(ParameterShard& table, const wire::LoadRequest& order) {
  CheckpointStore store = *CheckpointStore::OpenForWriting(absl::StrCat(
      testing::TempDir(), "/",
      testing::UnitTest::GetInstance()->current_test_info()->name()));
  durable::CheckpointManifest manifest;
  manifest.set_run_id(kRun);
  manifest.set_global_step(1);
  for (const wire::PartSpec& part : order.part()) {
    auto& variable = *manifest.add_variable();
    variable.set_name(part.variable());
    variable.add_shape(part.elements());
    const auto optimizer = *MakeOptimizer(
        part.has_optimizer() ? part.optimizer() : order.optimizer());
    const auto& slots = optimizer->slot_names();
    variable.mutable_slot()->Assign(slots.begin(), slots.end());
  }
  for (const wire::TableSpec& table : order.table()) {
    const auto optimizer = *MakeOptimizer(
        table.has_optimizer() ? table.optimizer() : order.optimizer());
    *manifest.add_table() = RowForm(table.name(), table.width(), *optimizer);
  }
  const std::string directory = *store.Begin(1);
  *manifest.add_file() = *WriteShard(table.TakeSnapshot(), 0, 1,
                                     absl::StrCat(directory, "/shard.sst"));
  EXPECT_OK(store.Commit(directory, manifest));
  return store.PathOf(1);
}

class RestoreTest : public testing::TestWithParam<const FieldDescriptor*> {};

// Steps, restores and steps on, beside a shard that steps on.
void ExpectTheSameBits(wire::LoadRequest order) {
  auto table = LoadShard(order, {});
  ASSERT_OK(table);
  for (int step = 0; step < 3; ++step) Push(**table, step);
  order.set_checkpoint(Dump(**table, order));
  auto restored = LoadShard(order, {});
  ASSERT_OK(restored);
  for (int step = 3; step < 6; ++step) {
    Push(**table, step);
    Push(**restored, step);
  }
  const std::vector<float> want = Everything(**table),
                           got = Everything(**restored);
  ASSERT_EQ(got.size(), want.size());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)),
            0);
}

TEST_P(RestoreTest, StepDumpRestoreStepGivesTheBitsOfSteppingOn) {
  ExpectTheSameBits(MakeOrder(GetParam()));
}

TEST_P(RestoreTest, SoDoesATableWhoseValuesAreKeptInBfloat16) {
  wire::LoadRequest order = MakeOrder(GetParam());
  order.mutable_table(0)->set_bfloat16(true);
  ExpectTheSameBits(order);
}

// The other shards have gone on while this one was lost.
TEST_P(RestoreTest, ARestoredShardGoesOnWhereTheChiefSaysThatTheClusterIs) {
  wire::LoadRequest order = MakeOrder(GetParam());
  order.mutable_sync()->set_replicas_to_aggregate(1);
  order.mutable_sync()->set_total_replicas(1);
  auto lost = LoadShard(order, {});
  ASSERT_OK(lost);
  Push(**lost, 0, /*is_synchronous=*/true);
  order.set_checkpoint(Dump(**lost, order));
  auto restored = LoadShard(order, {});
  ASSERT_OK(restored);
  (*restored)->GoOnAt(5);
  Push(**restored, 5, /*is_synchronous=*/true);
  const ShardSnapshot snapshot = (*restored)->TakeSnapshot();
  EXPECT_EQ(snapshot.chunks[0].contents.updates, 6);
  EXPECT_EQ(snapshot.tables[0].updates(), 6);
}

// "w" and "moving", which is not trained: 4 elements each.
wire::LoadRequest MakeOrderWithMovingMean() {
  wire::LoadRequest order;
  order.set_run_id(kRun);
  order.set_num_shards(1);
  order.mutable_optimizer()->mutable_adam();
  *order.add_part() = MakePart(0, "w", 4, 0, 4);
  *order.add_part() = MakePart(1, "moving", 4, 0, 4);
  for (wire::PartSpec& part : *order.mutable_part()) {
    part.mutable_initializer()->mutable_zeros();
  }
  order.mutable_part(1)->mutable_optimizer()->mutable_sgd()->set_learning_rate(
      1);
  return order;
}

void PushBoth(ParameterShard& table, const wire::Push& push, float gradient) {
  PendingResult pushed;
  const std::string elements = Floats(4, gradient);
  table.Execute(kWorker, OperationOf(push),
                {{ViewOf(elements), ViewOf(elements)}}, pushed.Done());
  if (!pushed.is_done()) return;  // waits for the other replica
  ASSERT_OK(pushed.Get());
}

std::vector<float> Moving(ParameterShard& table, int64_t min_updates = 0) {
  PendingResult pulled;
  wire::Pull pull = MakePull({MakeRange(1, 0, 4)});
  pull.set_min_updates(min_updates);
  table.Execute(/*worker_incarnation=*/1, OperationOf(pull), {}, pulled.Done());
  return FloatsOf(pulled.Get()->payloads);
}

TEST(PartOptimizerTest, WhatIsNotTrainedIsSubtractedBeforeAndAfterARestore) {
  wire::LoadRequest order = MakeOrderWithMovingMean();
  auto table = LoadShard(order, {});
  ASSERT_OK(table);
  EXPECT_EQ((*table)->bytes().values, 8 * sizeof(float));
  EXPECT_EQ((*table)->bytes().slots, 2 * 4 * sizeof(float));
  const auto both = {MakeRange(0, 0, 4), MakeRange(1, 0, 4)};
  PushBoth(**table, MakePush(1, both), -.25);
  order.set_checkpoint(Dump(**table, order));
  auto restored = LoadShard(order, {});
  ASSERT_OK(restored);
  PushBoth(**restored, MakePush(2, both), -.5);
  EXPECT_THAT(Moving(**restored), testing::Each(.75));
}

TEST(PartOptimizerTest, WhatIsNotTrainedMovesByTheMeanOfAStep) {
  wire::LoadRequest order = MakeOrderWithMovingMean();
  order.mutable_sync()->set_replicas_to_aggregate(2);
  order.mutable_sync()->set_total_replicas(2);
  auto table = LoadShard(order, {});
  ASSERT_OK(table);
  wire::Push push = MakePush(1, {MakeRange(0, 0, 4), MakeRange(1, 0, 4)});
  for (const int replica : {0, 1}) {
    push.mutable_sync()->set_step(0);
    push.mutable_sync()->set_replica(replica);
    PushBoth(**table, push, -1 - replica);
  }
  EXPECT_THAT(Moving(**table, 1), testing::Each(1.5));
}

TEST(PartOptimizerTest, ItsSlotsAreThoseOfItsOwnOptimizer) {
  wire::LoadRequest order = MakeOrderWithMovingMean();
  auto table = LoadShard(order, {});
  ASSERT_OK(table);
  order.set_checkpoint(Dump(**table, order));
  order.mutable_part(1)->mutable_optimizer()->mutable_sgd()->set_momentum(.9);
  EXPECT_THAT(LoadShard(order, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("\"moving\" has slots []")));
}

TEST(PartOptimizerTest, WhatIsNotTrainedTakesNoMemoryForSlots) {
  const wire::LoadRequest order = MakeOrderWithMovingMean();
  const uint64_t bytes = (4 * 3 + 4) * sizeof(float);
  EXPECT_OK(LoadShard(order, {.memory_bytes = bytes}));
  EXPECT_THAT(LoadShard(order, {.memory_bytes = bytes - 1}),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

// The number of updates of all chunks and tables of the run.
int64_t Updates(ParameterServer& server) {
  wire::PrepareSnapshotRequest request;
  request.set_run_id(kRun);
  const auto response = server.PrepareSnapshot(request);
  EXPECT_OK(response);
  if (!response.ok()) return -1;
  EXPECT_EQ(response->min_updates(), response->max_updates());
  return response->max_updates();
}

TEST(SynchronousRestoreTest, RestoredVariablesGoOnWhereTheirRunIs) {
  SimulatedClock clock;
  MetricsRegistry registry;
  PsMetrics metrics(registry);
  wire::LoadRequest order = MakeOrder(AllOptimizers()[0]);
  order.mutable_sync()->set_replicas_to_aggregate(1);
  order.mutable_sync()->set_total_replicas(1);
  ParameterServer fresh({.task = "ps/1"}, clock, metrics);
  ASSERT_OK(fresh.Load(order));
  fresh.GoOnAt(kRun, 5);
  EXPECT_EQ(Updates(fresh), 0) << "it was not restored";
  auto table = LoadShard(order, {});
  ASSERT_OK(table);
  order.set_checkpoint(Dump(**table, order));
  ParameterServer restored({.task = "ps/1"}, clock, metrics);
  restored.GoOnAt(kRun, 5);
  ASSERT_OK(restored.Load(order));
  EXPECT_EQ(Updates(restored), 5);
  restored.GoOnAt("another", 9);
  EXPECT_EQ(Updates(restored), 5);
  restored.GoOnAt(kRun, 7);
  EXPECT_EQ(Updates(restored), 7);
}

TEST(SynchronousRestoreTest, ACutIsOfTheRunThatThePsHolds) {
  SimulatedClock clock;
  MetricsRegistry registry;
  PsMetrics metrics(registry);
  ParameterServer server({.task = "ps/1"}, clock, metrics);
  wire::PrepareSnapshotRequest request;
  request.set_run_id(kRun);
  EXPECT_THAT(server.PrepareSnapshot(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  wire::LoadRequest order = MakeOrder(AllOptimizers()[0]);
  order.mutable_sync()->set_replicas_to_aggregate(1);
  order.mutable_sync()->set_total_replicas(1);
  ASSERT_OK(server.Load(order));
  EXPECT_OK(server.PrepareSnapshot(request));
  request.set_run_id("another");
  EXPECT_THAT(server.PrepareSnapshot(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// Optimizers of variables and tables, and the one of tables alone.
std::vector<const FieldDescriptor*> OptimizersOfShards() {
  std::vector<const FieldDescriptor*> all = AllOptimizers();
  all.push_back(
      job::Optimizer::descriptor()->FindFieldByName("rowwise_adagrad"));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, RestoreTest,
                         testing::ValuesIn(OptimizersOfShards()),
                         [](const auto& info) {
                           return std::string(info.param->name());
                         });

}  // namespace
}  // namespace parasol

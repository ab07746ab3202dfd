// A table that goes on with the rules of another one.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "cluster/rows/row_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/update_cases.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A table of width 1 whose rows begin at `value`.
std::unique_ptr<RowTable> MakeTable(float value, double rate,
                                    double momentum = 0, size_t width = 1) {
  RowTable::Options options = {.name = "items", .width = width, .seed = 3};
  options.initializer.mutable_constant()->set_value(value);
  job::Optimizer optimizer;
  optimizer.mutable_sgd()->set_learning_rate(rate);
  optimizer.mutable_sgd()->set_momentum(momentum);
  return *RowTable::Create(std::move(options), *MakeOptimizer(optimizer));
}

const std::byte* Bytes(const void* memory) {
  return static_cast<const std::byte*>(memory);
}

std::vector<float> Pull(RowTable& table, const std::vector<uint64_t>& ids) {
  std::vector<float> values(ids.size() * table.width());
  EXPECT_OK(table.Pull(Bytes(ids.data()), ids.size(), values.data()));
  return values;
}

void PushOnes(RowTable& table, const std::vector<uint64_t>& ids) {
  const std::vector<float> ones(ids.size() * table.width(), 1);
  EXPECT_OK(table.Push(Bytes(ids.data()), Bytes(ones.data()), ids.size()));
}

TEST(RowRules, LaterPushesAndRowsGoByThem) {
  const auto table = MakeTable(/*value=*/1, /*rate=*/0.5);
  PushOnes(*table, {7});
  EXPECT_THAT(Pull(*table, {7}), ElementsAre(0.5));
  ASSERT_OK(table->TakeRulesOf(*MakeTable(/*value=*/10, /*rate=*/2)));
  EXPECT_THAT(Pull(*table, {7, 8}), ElementsAre(0.5, 10));
  PushOnes(*table, {7, 9});
  EXPECT_THAT(Pull(*table, {7, 9}), ElementsAre(-1.5, 8));
  EXPECT_EQ(table->updates(), 2);
}

TEST(RowRules, AnOptimizerOfWholeVariablesIsRefused) {
  RowTable::Options options = {.name = "items", .width = 2};
  options.initializer.mutable_zeros();
  job::Optimizer optimizer;
  optimizer.mutable_lamb();
  EXPECT_THAT(RowTable::Create(options, *MakeOptimizer(optimizer)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table items: its optimizer needs whole")));
}

TEST(RowRules, RowsOfAnotherFormAreRefused) {
  const auto table = MakeTable(/*value=*/1, /*rate=*/0.5);
  EXPECT_THAT(table->TakeRulesOf(*MakeTable(1, 0.5, /*momentum=*/0.9)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      table->TakeRulesOf(*MakeTable(1, 0.5, /*momentum=*/0, /*width=*/2)),
      StatusIs(absl::StatusCode::kInvalidArgument));
  PushOnes(*table, {7});
  EXPECT_THAT(Pull(*table, {7}), ElementsAre(0.5));
}

std::unique_ptr<RowTable> MakeBounded(const RowBounds& bounds) {
  RowTable::Options options = {.name = "items", .width = 1};
  options.initializer.mutable_zeros();
  options.bounds = bounds;
  return *RowTable::Create(std::move(options),
                           *MakeOptimizer(ParseOptimizer("sgd {}")));
}

TEST(RowRules, BoundsOfAnotherKindAreRefused) {
  const RowBounds all = {.min_count = 3, .idle_steps = 5, .max_rows = 1024};
  const auto table = MakeBounded(all);
  RowBounds others[] = {all, all, all, {}};
  others[0].min_count = 0;
  others[1].idle_steps = 0;
  others[2].max_rows = 0;
  for (const RowBounds& other : others) {
    EXPECT_THAT(table->TakeRulesOf(*MakeBounded(other)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "table items would have an admission or an eviction "
                         "of another kind"));
  }
  EXPECT_OK(table->TakeRulesOf(
      *MakeBounded({.min_count = 300, .idle_steps = 1, .max_rows = 1 << 20})));
}

TEST(RowRules, FewerRowsThanStripesAreRefused) {
  RowTable::Options options = {.name = "items", .width = 1};
  options.initializer.mutable_zeros();
  options.bounds.max_rows = 127;
  EXPECT_THAT(
      RowTable::Create(options, *MakeOptimizer(ParseOptimizer("sgd {}"))),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "table items: eviction.max_rows leaves this shard 127 rows, but "
               "it needs 128 or more: raise it, or use fewer ps"));
}

TEST(RowRules, AnOptimizerOfTheUsersOwnNeedsItsCode) {
  job::Optimizer optimizer;
  optimizer.mutable_custom()->set_type("elsewhere");
  RowTable::Options options = {.name = "items", .width = 1};
  options.initializer.mutable_zeros();
  EXPECT_THAT(
      RowTable::Create(std::move(options), *MakeOptimizer(optimizer)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("table items: optimizer: this program has no custom "
                         "optimizer \"elsewhere\"")));
}

}  // namespace
}  // namespace parasol

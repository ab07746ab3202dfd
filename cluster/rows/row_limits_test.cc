// The memory limit of tables with bounds, which may change in a running table.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/row_hash.h"
#include "base/status_matchers.h"
#include "cluster/rows/row_block.h"
#include "cluster/rows/row_memory.h"
#include "cluster/rows/row_stripe.h"
#include "cluster/rows/row_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/update_cases.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A block has one row: the memory of rows is exact.
constexpr size_t kLargeWidth = 4096;

size_t BytesOfRows(size_t rows) {
  return rows *
         RowRules::BytesPerRow(RowLayout(kLargeWidth, kLargeWidth, true));
}

std::unique_ptr<RowTable> MakeLarge(const RowBounds& bounds,
                                    std::shared_ptr<RowMemory> memory) {
  RowTable::Options options = {.name = "items", .width = kLargeWidth};
  options.initializer.mutable_zeros();
  options.bounds = bounds;
  options.memory = std::move(memory);
  return *RowTable::Create(std::move(options),
                           *MakeOptimizer(ParseOptimizer("sgd {}")));
}

// Returns `count` ids of each stripe: their hashes are `first` and the next
// ones.
std::vector<uint64_t> IdsOfAllStripes(size_t count, uint64_t first) {
  std::vector<uint64_t> ids;
  for (uint64_t stripe = 0; stripe < kRowStripes; ++stripe) {
    for (size_t i = 0; i < count; ++i) {
      ids.push_back(RowIdOf(stripe << (64 - kRowStripeBits) | (first + i)));
    }
  }
  return ids;
}

absl::Status PushZeros(RowTable& table, const std::vector<uint64_t>& ids) {
  const std::vector<float> gradients(ids.size() * kLargeWidth);
  return table.Push(reinterpret_cast<const std::byte*>(ids.data()),
                    reinterpret_cast<const std::byte*>(gradients.data()),
                    ids.size());
}

TEST(RowLimitsTest, RaisedBoundsLeaveTheMemoryLimit) {
  const auto memory = std::make_shared<RowMemory>(BytesOfRows(300));
  const auto table = MakeLarge({.max_rows = 128}, memory);
  // One row of each stripe is all that there may be.
  ASSERT_OK(PushZeros(*table, IdsOfAllStripes(4, 0)));
  EXPECT_EQ(table->rows(), 128u);
  const auto larger =
      MakeLarge({.max_rows = 12800}, std::make_shared<RowMemory>());
  ASSERT_OK(table->TakeRulesOf(*larger));
  EXPECT_THAT(PushZeros(*table, IdsOfAllStripes(4, 100)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("table items: 512 more rows")));
  EXPECT_LE(memory->taken_bytes(), memory->limit_bytes());
  EXPECT_OK(PushZeros(*table, IdsOfAllStripes(1, 100)));
  EXPECT_EQ(table->rows(), 256u);
}

TEST(RowLimitsTest, WithLoweredBoundsAFullTableTakesPushes) {
  const auto memory = std::make_shared<RowMemory>(BytesOfRows(300));
  const auto table = MakeLarge({.max_rows = 512}, memory);
  ASSERT_OK(PushZeros(*table, IdsOfAllStripes(2, 0)));
  ASSERT_EQ(table->rows(), 256u);
  EXPECT_THAT(PushZeros(*table, IdsOfAllStripes(1, 100)),
              StatusIs(absl::StatusCode::kResourceExhausted));
  const auto smaller =
      MakeLarge({.max_rows = 128}, std::make_shared<RowMemory>());
  ASSERT_OK(table->TakeRulesOf(*smaller));
  // Rows stay until their stripe makes one.
  EXPECT_EQ(table->rows(), 256u);
  EXPECT_OK(PushZeros(*table, IdsOfAllStripes(1, 100)));
  EXPECT_EQ(table->rows(), 128u);
  EXPECT_EQ(memory->taken_bytes(), BytesOfRows(128));
}

TEST(RowLimitsTest, InsertionsBeyondTheBoundsKeepTheMemoryLimit) {
  const auto memory = std::make_shared<RowMemory>(BytesOfRows(300));
  const auto table = MakeLarge({.max_rows = 128}, memory);
  const std::vector<uint64_t> ids = IdsOfAllStripes(4, 0);
  const std::vector<float> rows(ids.size() * kLargeWidth);
  EXPECT_THAT(table->Insert({.updates = 1, .ids = ids, .rows = rows}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("table items: 512 more rows")));
  EXPECT_EQ(memory->taken_bytes(), 0u);
  // More than the bounds allow, but they fit.
  const std::vector<uint64_t> some = IdsOfAllStripes(2, 0);
  ASSERT_OK(table->Insert(
      {.updates = 1,
       .ids = some,
       .rows = absl::MakeConstSpan(rows).first(some.size() * kLargeWidth)}));
  EXPECT_EQ(table->rows(), 256u);
  table->EndInsertions();
  EXPECT_EQ(table->rows(), 128u);
}

TEST(RowLimitsTest, TheErrorNamesCountsIfThereAreSome) {
  constexpr char kCounts[] =
      " bytes are counts of ids without a row: set or lower "
      "eviction.idle_steps";
  const auto counting = MakeLarge(
      {.min_count = 3}, std::make_shared<RowMemory>(BytesOfRows(300)));
  ASSERT_OK(PushZeros(*counting, IdsOfAllStripes(1, 0)));
  EXPECT_THAT(PushZeros(*counting, IdsOfAllStripes(4, 0)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("or raise --memory_limit_bytes; "),
                             HasSubstr(kCounts))));
  const auto plain =
      MakeLarge({}, std::make_shared<RowMemory>(BytesOfRows(300)));
  EXPECT_THAT(
      PushZeros(*plain, IdsOfAllStripes(4, 0)),
      StatusIs(absl::StatusCode::kResourceExhausted, Not(HasSubstr("counts"))));
}

}  // namespace
}  // namespace parasol

// When rows and counts were touched: by pushes that reach a stripe in another
// order, and in a table that counts its updates anew.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/row_hash.h"
#include "base/status_matchers.h"
#include "cluster/rows/id_counts.h"
#include "cluster/rows/row_snapshot.h"
#include "cluster/rows/row_stripe.h"
#include "cluster/rows/row_table.h"
#include "cluster/rows/striped_ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/testing/update_cases.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

using Touches = std::map<uint64_t, int64_t>;

std::unique_ptr<RowTable> MakeTimed(const RowBounds& bounds) {
  RowTable::Options options = {.name = "items", .width = 1};
  options.initializer.mutable_zeros();
  options.bounds = bounds;
  return *RowTable::Create(std::move(options),
                           *MakeOptimizer(ParseOptimizer("sgd {}")));
}

void PushOnes(RowTable& table, const std::vector<uint64_t>& ids) {
  const std::vector<float> ones(ids.size(), 1);
  EXPECT_OK(table.Push(reinterpret_cast<const std::byte*>(ids.data()),
                       reinterpret_cast<const std::byte*>(ones.data()),
                       ids.size()));
}

Touches TouchesOfRows(RowSnapshot snapshot) {
  Touches touches;
  EXPECT_OK(snapshot.Drain([&](const RowBatch& batch) {
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      touches[batch.ids[i]] = batch.touched[i];
    }
    return absl::OkStatus();
  }));
  return touches;
}

Touches TouchesOfCounts(const RowSnapshot& snapshot) {
  Touches touches;
  EXPECT_OK(snapshot.VisitCounts([&](const CountBatch& batch) {
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      touches[batch.ids[i]] = batch.touched[i];
    }
    return absl::OkStatus();
  }));
  return touches;
}

// Returns an id of the first stripe.
uint64_t IdOf(uint64_t number) { return RowIdOf(number); }

TEST(RowTouchesTest, FewerUpdatesTouchNothingLater) {
  const auto table = MakeTimed({.min_count = 2, .idle_steps = 5});
  const uint64_t old = 1, young = 2, counted_old = 3, counted = 4;
  for (int i = 0; i < 2; ++i) PushOnes(*table, {old});
  PushOnes(*table, {counted_old});
  for (int i = 0; i < 2; ++i) PushOnes(*table, {old, young});
  PushOnes(*table, {counted});
  ASSERT_EQ(table->updates(), 6);
  table->CountAtMost(9);  // changes nothing
  ASSERT_EQ(table->updates(), 6);
  ASSERT_THAT(TouchesOfRows(table->TakeSnapshot()),
              ElementsAre(Pair(old, 5), Pair(young, 5)));
  ASSERT_THAT(TouchesOfCounts(table->TakeSnapshot()),
              ElementsAre(Pair(counted_old, 3), Pair(counted, 6)));
  table->CountAtMost(4);
  EXPECT_EQ(table->updates(), 4);
  EXPECT_THAT(TouchesOfRows(table->TakeSnapshot()),
              ElementsAre(Pair(old, 4), Pair(young, 4)));
  EXPECT_THAT(TouchesOfCounts(table->TakeSnapshot()),
              ElementsAre(Pair(counted_old, 3), Pair(counted, 4)));
  // They go as if update 4 had touched them.
  for (int i = 0; i < 5; ++i) PushOnes(*table, {});
  EXPECT_EQ(TouchesOfRows(table->TakeSnapshot()).size(), 2u);
  EXPECT_EQ(TouchesOfCounts(table->TakeSnapshot()).size(), 1u);
  PushOnes(*table, {});
  EXPECT_EQ(TouchesOfRows(table->TakeSnapshot()).size(), 0u);
  EXPECT_EQ(TouchesOfCounts(table->TakeSnapshot()).size(), 0u);
}

TEST(RowTouchesTest, RowsThatAreTouchedAtOnceByFewerUpdatesGoBySmallestId) {
  const auto table = MakeTimed({.max_rows = 3 * kRowStripes});
  std::vector<uint64_t> ids = {IdOf(1), IdOf(2), IdOf(3)};
  std::sort(ids.begin(), ids.end());
  // The smallest one is touched last.
  for (const uint64_t id : {ids[1], ids[2], ids[0]}) PushOnes(*table, {id});
  table->CountAtMost(1);
  PushOnes(*table, {IdOf(4)});
  Touches want = {{ids[1], 1}, {ids[2], 1}, {IdOf(4), 2}};
  EXPECT_EQ(TouchesOfRows(table->TakeSnapshot()), want);
}

TEST(RowTouchesTest, APushThatComesLateTouchesNothingEarlier) {
  RowInitializer initializer = [] {
    job::Initializer zeros;
    zeros.mutable_zeros();
    return *RowInitializer::Create(zeros, 3, "items", 1);
  }();
  const RowBounds bounds = {.min_count = 2, .idle_steps = 100};
  const auto rules = std::make_shared<const RowRules>(
      RowRules{.layout = RowLayout(1, 1, /*timed=*/true),
               .initializer = initializer,
               .optimizer = *MakeOptimizer(ParseOptimizer("sgd {}")),
               .memory = std::make_shared<RowMemory>(),
               .bounds = bounds,
               .totals = std::make_shared<RowTotals>()});
  RowArena arena;
  RowStripe stripe(rules, arena, .5, /*max_rows=*/0);
  const auto push = [&](int64_t update, uint64_t id, uint32_t occurrences) {
    StripedIds sorted;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&id);
    sorted.Assign(bytes, 1);
    const float one = 1;
    const auto* const gradient = reinterpret_cast<const std::byte*>(&one);
    EXPECT_OK(stripe.Push(update - 1,
                          {.run = sorted.run(0),
                           .gradients = absl::MakeConstSpan(&gradient, 1),
                           .counts = absl::MakeConstSpan(&occurrences, 1)},
                          bytes, nullptr));
  };
  push(9, IdOf(1), 2);
  push(7, IdOf(1), 1);
  push(8, IdOf(2), 2);
  push(6, IdOf(2), 1);
  push(10, IdOf(2), 1);
  push(4, IdOf(3), 2);
  RowStripe::Contents contents;
  stripe.AddTo(/*updates=*/10, contents);
  Touches touches;
  for (const RowStripe::Piece& piece : contents.pieces) {
    for (uint32_t row = 0; row < piece.rows; ++row) {
      touches[piece.block.ids(rules->layout)[row]] =
          piece.block.touched(rules->layout)[row];
    }
  }
  EXPECT_EQ(touches, (Touches{{IdOf(1), 9}, {IdOf(2), 10}, {IdOf(3), 4}}));
}

TEST(IdCountsTest, ALaterUpdateThatHasTouchedACountStays) {
  IdCounts counts({.min_count = 5, .idle_steps = 10});
  counts.Set(77, 1, /*touched=*/20);
  counts.Set(77, 2, /*touched=*/18);
  std::vector<IdCounts::Entry> entries;
  counts.ForEach(
      20, [&](const IdCounts::Entry& entry) { entries.push_back(entry); });
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].count, 2u);
  EXPECT_EQ(entries[0].touched, 20);
  EXPECT_EQ(counts.Find(77, 30), 2u);
  EXPECT_EQ(counts.Find(77, 31), 0u);
}

TEST(IdCountsTest, CountsBecomeWiderWithTheBounds) {
  for (const int64_t idle_steps : {0, 1000}) {
    IdCounts counts({.min_count = 128, .idle_steps = idle_steps});
    for (uint64_t hash = 1; hash <= 1000; ++hash) {
      counts.Set(hash, 1 + hash % 127, /*touched=*/5);
    }
    const size_t bytes = counts.bytes();
    counts.UseBounds({.min_count = 128, .idle_steps = idle_steps});
    EXPECT_EQ(counts.bytes(), bytes);
    counts.UseBounds({.min_count = 129, .idle_steps = idle_steps});
    EXPECT_GT(counts.bytes(), bytes);
    for (uint64_t hash = 1; hash <= 1000; ++hash) {
      ASSERT_EQ(counts.Find(hash, 6), 1 + hash % 127) << hash;
    }
    EXPECT_EQ(counts.Find(1001, 6), 0u);
    // 128 has no place in the entries themselves.
    counts.Set(7, 128, /*touched=*/6);
    counts.Set(2000, 128, /*touched=*/6);
    counts.Erase(8);
    EXPECT_EQ(counts.Find(7, 6), 128u);
    EXPECT_EQ(counts.Find(2000, 6), 128u);
    EXPECT_EQ(counts.Find(8, 6), 0u);
    EXPECT_EQ(counts.size(), 1000u);
    // Narrow bounds again leave the width, and take larger counts for less.
    counts.UseBounds({.min_count = 3, .idle_steps = idle_steps});
    counts.Set(7, 128, /*touched=*/6);
    EXPECT_EQ(counts.Find(7, 6), 2u);
  }
}

}  // namespace
}  // namespace parasol

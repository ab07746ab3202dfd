#include "ml/input/example_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> Epoch(const InputShardOrder& shard, int64_t epoch) {
  ExampleOrder order(shard);
  order.StartEpoch(epoch);
  std::vector<int64_t> examples;
  while (const std::optional<int64_t> example = order.Next()) {
    examples.push_back(*example);
  }
  return examples;
}

TEST(ExampleOrderTest, WithoutABufferItIsFileOrder) {
  EXPECT_THAT(Epoch({.total = 4}, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Epoch({.total = 4, .shuffle_buffer = 1}, 3),
              ElementsAre(0, 1, 2, 3));
}

TEST(ExampleOrderTest, ShardsTakeTurns) {
  EXPECT_THAT(Epoch({.total = 7, .shard = 1, .num_shards = 3}, 0),
              ElementsAre(1, 4));
}

TEST(ExampleOrderTest, ShardBeyondTheSetIsEmpty) {
  EXPECT_THAT(Epoch({.total = 2, .shard = 2, .num_shards = 3}, 0), IsEmpty());
}

TEST(ExampleOrderTest, ShardsCoverTheSetOnceWhateverTheBuffer) {
  for (const int64_t buffer : {0, 1, 2, 5, 1000}) {
    for (const int64_t num_shards : {1, 2, 3, 10}) {
      std::map<int64_t, int> seen;
      for (int64_t shard = 0; shard < num_shards; ++shard) {
        for (const int64_t example : Epoch({.total = 101,
                                     .shard = shard,
                                     .num_shards = num_shards,
                                     .shuffle_buffer = buffer,
                                     .seed = 5},
                                           2)) {
          EXPECT_EQ(example % num_shards, shard);
          ++seen[example];
        }
      }
      EXPECT_EQ(seen.size(), 101);
      for (const auto& [example, times] : seen) EXPECT_EQ(times, 1) << example;
    }
  }
}

TEST(ExampleOrderTest, SameSeedAndPassIsTheSameOrder) {
  const InputShardOrder shard = {.total = 100, .shuffle_buffer = 10, .seed = 7};
  EXPECT_EQ(Epoch(shard, 3), Epoch(shard, 3));
}

TEST(ExampleOrderTest, PassesSeedsAndShardsDiffer) {
  const InputShardOrder shard = {
      .total = 100, .shuffle_buffer = 100, .seed = 7};
  EXPECT_NE(Epoch(shard, 0), Epoch(shard, 1));
  InputShardOrder reseeded = shard;
  reseeded.seed = 8;
  EXPECT_NE(Epoch(shard, 0), Epoch(reseeded, 0));
  reseeded.seed = uint64_t{7} | uint64_t{1} << 32;
  EXPECT_NE(Epoch(shard, 0), Epoch(reseeded, 0));
}

TEST(ExampleOrderTest, APassDoesNotDependOnTheOneBefore) {
  const InputShardOrder shard = {.total = 100, .shuffle_buffer = 10};
  ExampleOrder order(shard);
  order.StartEpoch(0);
  order.Next();
  order.StartEpoch(4);
  EXPECT_EQ(order.Next(), Epoch(shard, 4).front());
}

// Example i is in the buffer once i - buffer + 1 others have been drawn.
TEST(ExampleOrderTest, NoExampleComesEarlierThanItsBufferAllows) {
  const std::vector<int64_t> epoch =
      Epoch({.total = 1000, .shuffle_buffer = 16}, 0);
  for (size_t at = 0; at < epoch.size(); ++at) {
    EXPECT_LT(epoch[at], static_cast<int64_t>(at) + 16);
  }
}

TEST(ExampleOrder, SkippedExamplesAreThoseThatWouldHaveCome) {
  for (const int64_t buffer : {0, 7}) {
    const InputShardOrder shard = {
        .total = 20, .shard = 1, .num_shards = 3, .shuffle_buffer = buffer};
    const std::vector<int64_t> all = Epoch(shard, 2);
    for (size_t skipped = 0; skipped <= all.size() + 1; ++skipped) {
      ExampleOrder order(shard);
      order.StartEpoch(2);
      order.Skip(skipped);
      const std::optional<int64_t> want =
          skipped < all.size() ? std::optional(all[skipped]) : std::nullopt;
      EXPECT_EQ(order.Next(), want) << skipped << " of buffer " << buffer;
    }
  }
}

// 24 orders of 4, 24,000 epochs: 1,000 each, ± 6 standard deviations.
TEST(ExampleOrderTest, FullBufferMakesEveryOrderEquallyLikely) {
  std::map<std::vector<int64_t>, int> orders;
  for (int64_t epoch = 0; epoch < 24000; ++epoch) {
    ++orders[Epoch({.total = 4, .shuffle_buffer = 4}, epoch)];
  }
  EXPECT_EQ(orders.size(), 24);
  for (const auto& [order, times] : orders) EXPECT_NEAR(times, 1000, 190);
}

// A literal: an order that changed would make restarted jobs see other data.
TEST(ExampleOrderTest, OrderIsTheSameOnEveryMachine) {
  EXPECT_THAT(Epoch({.total = 8, .shuffle_buffer = 8, .seed = 42}, 1),
              ElementsAre(5, 1, 3, 6, 2, 4, 7, 0));
}

}  // namespace
}  // namespace parasol

#include "coordinator/steps/batch_pool.h"

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

std::vector<int64_t> TakeFrom(BatchPool& pool, const std::vector<int>& shards) {
  std::vector<int64_t> batches;
  for (const int shard : shards) batches.push_back(pool.Take(shard));
  return batches;
}

TEST(BatchPool, TheBatchesOfOneShardAreTakenInTheirOrder) {
  BatchPool pool;
  EXPECT_THAT(TakeFrom(pool, {0, 1, 2}), ElementsAre(0, 1, 2));
  pool.SetShards({2});
  EXPECT_THAT(TakeFrom(pool, {0, 0}), ElementsAre(3, 4));
}

TEST(BatchPool, AResumedRunGoesOnBehindItsSteps) {
  BatchPool pool(7);
  EXPECT_THAT(TakeFrom(pool, {0, 0}), ElementsAre(7, 8));
}

TEST(BatchPool, ABatchThatIsReturnedIsTakenFirstAndOnce) {
  BatchPool pool;
  TakeFrom(pool, {0, 0, 0});
  pool.Return(1);
  EXPECT_THAT(TakeFrom(pool, {0, 0}), ElementsAre(1, 3));
}

TEST(BatchPool, ABatchIsRemovedOnlyWhileItIsThere) {
  BatchPool pool;
  TakeFrom(pool, {0, 0});
  pool.Return(1);
  EXPECT_TRUE(pool.Remove(1));
  EXPECT_FALSE(pool.Remove(1));
  EXPECT_EQ(pool.Take(0), 2);
}

TEST(BatchPool, AWorkerTakesItsOwnShardFirstAndThenOfTheOneThatHasMost) {
  BatchPool pool;
  pool.SetShards({1, 2, 4});
  EXPECT_THAT(TakeFrom(pool, {1, 0}), ElementsAre(1, 0));
  EXPECT_THAT(TakeFrom(pool, {0, 0}), ElementsAre(3, 4)) << "of shard 2";
  EXPECT_EQ(pool.Take(1), 2);
}

TEST(BatchPool, AnEpochIsTakenWhollyBeforeTheNextOne) {
  BatchPool pool;
  pool.SetShards({1, 2});
  EXPECT_THAT(TakeFrom(pool, {0, 0, 0}), UnorderedElementsAre(0, 1, 2));
  EXPECT_THAT(TakeFrom(pool, {1, 1, 1}), UnorderedElementsAre(3, 4, 5));
}

TEST(BatchPool, AResumedRunOfSeveralShardsEndsItsEpoch) {
  for (int64_t taken = 0; taken < 7; ++taken) {
    BatchPool pool(taken);
    pool.SetShards({1, 2, 4});
    std::vector<int64_t> rest;
    while (taken + static_cast<int64_t>(rest.size()) < 7) {
      rest.push_back(pool.Take(2));
      EXPECT_LT(rest.back(), 7);
    }
    EXPECT_GE(pool.Take(2), 7) << taken;
  }
}

std::vector<int64_t> TakeAllBefore(BatchPool& pool, int64_t end) {
  std::vector<int64_t> batches;
  for (int64_t batch = pool.Take(0); batch < end; batch = pool.Take(0)) {
    batches.push_back(batch);
  }
  return batches;
}

TEST(BatchPool, WhatIsLeftMakesAPoolThatGoesOnInTheSameWay) {
  for (int taken = 0; taken <= 14; ++taken) {
    for (const bool is_known_first : {false, true}) {
      SCOPED_TRACE(testing::Message() << taken << ", " << is_known_first);
      BatchPool pool;
      pool.SetShards({1, 2, 4});
      std::vector<int64_t> batches;
      for (int i = 0; i < taken; ++i) batches.push_back(pool.Take(i % 3));
      int64_t done = taken;
      if (taken > 2) {
        pool.Return(batches[1]);
        --done;
      }
      BatchPool resumed(done, pool.Left());
      if (is_known_first) resumed.SetShards({1, 2, 4});
      resumed.SetShards({1, 2, 4});
      EXPECT_THAT(TakeAllBefore(resumed, 14),
                  UnorderedElementsAreArray(TakeAllBefore(pool, 14)));
    }
  }
}

TEST(BatchPool, ManyAreTakenAsOneByOne) {
  for (const int64_t count : {0, 3, 7, 20, 70}) {
    SCOPED_TRACE(count);
    BatchPool one;
    BatchPool many;
    for (BatchPool* pool : {&one, &many}) {
      pool->SetShards({1, 2, 4});
      TakeFrom(*pool, {1, 2});
      pool->Return(1);
    }
    for (int64_t i = 0; i < count; ++i) one.Take(1);
    many.TakeMany(1, count);
    EXPECT_EQ(many.Take(1), one.Take(1));
    EXPECT_EQ(many.Take(0), one.Take(0));
  }
  BatchPool pool;
  pool.SetShards({1, 2, 4});
  pool.TakeMany(0, int64_t{7} << 50);
  EXPECT_EQ(pool.Take(0), int64_t{7} << 50);
}

TEST(BatchPool, ARangeIsTakenWhateverItsTurn) {
  BatchPool pool;
  TakeFrom(pool, {0, 0, 0});
  pool.Return(1);
  EXPECT_EQ(pool.TakeThese(1, 5), 4) << "1, 3, 4 and 5; 2 was taken";
  EXPECT_EQ(pool.TakeThese(1, 5), 0);
  EXPECT_EQ(pool.TakeThese(8, 1), 1);
  EXPECT_THAT(TakeFrom(pool, {0, 0, 0}), ElementsAre(6, 7, 9));
}

// Whatever is taken, each batch is taken once, and an epoch before the next.
TEST(BatchPool, RangesAreTakenOfAnyShardAndEpoch) {
  constexpr int64_t kBatches = 28;
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const std::vector<int64_t> shards = round % 2 == 0
                                            ? std::vector<int64_t>{1, 2, 4}
                                            : std::vector<int64_t>{7};
    BatchPool pool;
    pool.SetShards(shards);
    std::set<int64_t> left;
    for (int64_t batch = 0; batch < kBatches; ++batch) left.insert(batch);
    const auto some = [&random](int64_t below) {
      return static_cast<int64_t>(random() % below);
    };
    for (int i = 0; i < 8; ++i) {
      const int64_t first = some(kBatches);
      const int64_t count = 1 + some(kBatches - first);
      switch (some(3)) {
        case 0:
          if (!left.empty()) {
            const int64_t taken = pool.Take(static_cast<int>(some(3)));
            ASSERT_EQ(left.erase(taken), 1u) << taken;
          }
          break;
        case 1:
          if (!left.contains(first)) {
            ASSERT_EQ(pool.TakeThese(first, 1), 0) << "it was taken";
            pool.Return(first);
            left.insert(first);
          }
          break;
        default:
          int64_t there = 0;
          for (int64_t batch = first; batch < first + count; ++batch) {
            there += static_cast<int64_t>(left.erase(batch));
          }
          ASSERT_EQ(pool.TakeThese(first, count), there);
      }
    }
    // A pool that goes on where this one is, too.
    const BatchSpans spans = pool.Left();
    const int64_t end = spans.empty() ? 0 : spans.ends().rbegin()->second;
    BatchPool resumed(kBatches - static_cast<int64_t>(left.size()), spans);
    resumed.SetShards(shards);
    for (BatchPool* const one : {&pool, &resumed}) {
      SCOPED_TRACE(one == &pool ? "pool" : "resumed");
      std::set<int64_t> rest;
      for (size_t i = 0; i < left.size(); ++i) rest.insert(one->Take(0));
      ASSERT_EQ(rest, left) << "spans end at " << end;
    }
  }
}

TEST(BatchPool, ManyEpochsAreTakenAtOnce) {
  BatchPool pool;
  pool.SetShards({1, 2, 4});
  pool.Take(2);
  constexpr int64_t kMany = int64_t{7} << 50;
  EXPECT_EQ(pool.TakeThese(5, kMany), kMany);
  EXPECT_EQ(pool.TakeThese(kMany - 2, 20), 13)
      << "up to kMany + 5 they were taken";
  EXPECT_THAT(TakeFrom(pool, {0, 0, 0, 0}), ElementsAre(0, 1, 2, 4));
}

}  // namespace
}  // namespace parasol

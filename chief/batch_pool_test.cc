#include "chief/batch_pool.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

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

}  // namespace
}  // namespace parasol

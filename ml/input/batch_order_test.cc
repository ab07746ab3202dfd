#include "ml/input/batch_order.h"

#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/input_shard.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

// 7 batches of 2 in the first file, 3 in the second one.
const std::vector<int64_t>& Files() {
  static const auto* const files = new std::vector<int64_t>{0, 14, 20};
  return *files;
}

std::vector<InputShard> Shards(const Selection& selection, int number) {
  std::vector<InputShard> shards;
  for (int i = 0; i < number; ++i) {
    shards.push_back(*InputShard::Create(selection, job::Dataset::FILE,
                                         {.shard = i, .num_shards = number}));
  }
  return shards;
}

std::vector<int64_t> Places(const BatchOrder& order) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < 12; ++i) places.push_back(order.PlaceOf(i));
  return places;
}

TEST(BatchOrderTest, AShardOfItsOwnIsReadInItsOrder) {
  const Selection selection(Files(), nullptr);
  EXPECT_THAT(Places(BatchOrder(selection, Shards(selection, 1),
                                {.batch_size = 2, .repeat = true})),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(BatchOrderTest, ShardsAreReadBesideEachOther) {
  const Selection selection(Files(), nullptr);
  EXPECT_THAT(Places(BatchOrder(selection, Shards(selection, 2),
                                {.batch_size = 2, .repeat = true})),
              ElementsAre(0, 2, 4, 6, 8, 9, 9, 0, 2, 4, 10, 12));
}

TEST(BatchOrderTest, ASmallShardsEpochCountsAsTheLargestOnes) {
  const Selection selection(Files(), nullptr);
  const std::vector<InputShard> shards = Shards(selection, 2);
  EXPECT_THAT(Places(BatchOrder(
                  selection, {shards[1]},
                  {.batch_size = 2, .repeat = true, .counted_per_epoch = 7})),
              ElementsAre(0, 1, 2, 7, 8, 9, 14, 15, 16, 21, 22, 23));
}

}  // namespace
}  // namespace parasol

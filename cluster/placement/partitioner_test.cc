#include "cluster/placement/partitioner.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using testing::ElementsAre;

constexpr int kNumPs = 3;

int64_t Parts(const std::string& strategy, const std::vector<int64_t>& shape) {
  job::ParameterServerStrategy parsed;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(strategy, &parsed));
  return NumParts(parsed, shape, kNumPs);
}

TEST(NumPartsTest, AgreesWithTensorFlowsPartitioners) {
  struct Case {
    std::string strategy;
    std::vector<int64_t> shape;
    int64_t parts;
  };
  const Case cases[] = {
      {"min_size { min_shard_bytes: 4 max_shards: 2 }", {6, 1}, 2},
      {"min_size { min_shard_bytes: 4 max_shards: 10 }", {6, 1}, 6},
      {"min_size { min_shard_bytes: 262144 max_shards: 16 }", {1024, 1024}, 16},
      {"min_size { min_shard_bytes: 262144 max_shards: 99 }", {1024, 1024}, 16},
      {"min_size { min_shard_bytes: 262144 max_shards: 15 }", {1024, 1024}, 15},
      {"min_size { min_shard_bytes: 262144 max_shards: 9 }", {10}, 1},
      {"max_size { max_shard_bytes: 4 }", {6, 1}, 6},
      {"max_size { max_shard_bytes: 4 max_shards: 2 }", {6, 1}, 2},
      {"max_size { max_shard_bytes: 1024 }", {6, 1}, 1},
      {"max_size { max_shard_bytes: 8 }", {6, 1}, 3},
      {"max_size { max_shard_bytes: 11 }", {6, 1}, 3},
      {"max_size { max_shard_bytes: 16 }", {6, 1}, 2},
      {"max_size { max_shard_bytes: 1 }", {6, 100}, 6},
      {"min_size { min_shard_bytes: 262144 max_shards: 2 }", {10, 1 << 20}, 2},
      {"min_size { min_shard_bytes: 100 max_shards: 4 }", {6, 1}, 1},
      {"min_size { min_shard_bytes: 1 max_shards: 100 }", {6, 1}, 6},
      {"min_size { min_shard_bytes: 13 max_shards: 100 }", {10, 3}, 10},
      {"min_size { min_shard_bytes: 25 max_shards: 100 }", {10, 3}, 5},
      {"min_size { min_shard_bytes: 1000 max_shards: 3 }", {10, 3}, 1},
      {"max_size { max_shard_bytes: 3 }", {6, 1}, 6},
      {"max_size { max_shard_bytes: 9 }", {6, 1}, 3},
      {"max_size { max_shard_bytes: 23 }", {6, 1}, 2},
      {"max_size { max_shard_bytes: 24 }", {6, 1}, 1},
      {"max_size { max_shard_bytes: 40 }", {10, 3}, 4},
      {"max_size { max_shard_bytes: 1048576 }", {1000, 1000}, 4},
      {"max_size { max_shard_bytes: 1048576 max_shards: 2 }", {1000, 1000}, 2},
      {"fixed_shards { shards: 3 }", {7}, 3},
      {"fixed_shards { shards: 3 }", {2, 3}, 2},
      {"fixed_shards { shards: 2 }", {6, 1}, 2},
      {"fixed_shards { shards: 9 }", {6, 1}, 6},
      {"", {6, 1}, 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.strategy);
    EXPECT_EQ(Parts(c.strategy, c.shape), c.parts);
  }
}

TEST(NumPartsTest, MinSizeWithoutALimitStopsAtTheNumberOfPs) {
  EXPECT_EQ(Parts("min_size { min_shard_bytes: 4 max_shards: 0 }", {6, 1}), 3);
  EXPECT_EQ(Parts("min_size { min_shard_bytes: 12 max_shards: 0 }", {6, 1}), 2);
}

TEST(NumPartsTest, AScalarIsNeverSplit) {
  for (const char* strategy :
       {"fixed_shards { shards: 2 }", "min_size { min_shard_bytes: 1 }",
        "max_size { max_shard_bytes: 1 }"}) {
    EXPECT_EQ(Parts(strategy, {}), 1);
  }
}

TEST(NumPartsTest, LargeLimitsDoNotOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  job::ParameterServerStrategy strategy;
  strategy.mutable_min_size()->set_min_shard_bytes(kMax);
  EXPECT_EQ(NumParts(strategy, {int64_t{1} << 30, 1 << 20}, kNumPs), 1);
  strategy.mutable_max_size()->set_max_shard_bytes(kMax);
  EXPECT_EQ(NumParts(strategy, {int64_t{1} << 30, 1 << 20}, kNumPs), 1);
  strategy.mutable_fixed_shards()->set_shards(kMax);
  EXPECT_EQ(NumParts(strategy, {6}, kNumPs), 6);
}

TEST(SplitRowsTest, TheFirstPartsAreOneRowLonger) {
  EXPECT_THAT(SplitRows(13, 5), ElementsAre(3, 3, 3, 2, 2));
  EXPECT_THAT(SplitRows(10, 4), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(SplitRows(4, 4), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(SplitRows(7, 1), ElementsAre(7));
}

}  // namespace
}  // namespace parasol

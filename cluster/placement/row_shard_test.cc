#include "cluster/placement/row_shard.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

constexpr uint32_t kShards = 7;
constexpr uint64_t kIds = 70000;

// Rows of each shard if ids are `first`, `first + stride`, …
std::vector<int> RowsOfShards(uint64_t first, uint64_t stride) {
  std::vector<int> rows(kShards);
  for (uint64_t i = 0; i < kIds; ++i) {
    ++rows[ShardOfRow(first + i * stride, kShards)];
  }
  return rows;
}

TEST(RowShardTest, IdsOfAnyPatternSpreadEvenly) {
  constexpr double kMean = static_cast<double>(kIds) / kShards;
  for (const uint64_t stride : {1ull, 7ull, 1024ull, 1ull << 32, 1ull << 44}) {
    SCOPED_TRACE(stride);
    for (const int rows : RowsOfShards(/*first=*/123, stride)) {
      // Six standard deviations.
      EXPECT_NEAR(rows, kMean, 6 * std::sqrt(kMean));
    }
  }
}

TEST(RowShardTest, OneShardHasAllRows) {
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    EXPECT_EQ(ShardOfRow(id, 1), 0u);
  }
}

TEST(RowShardTest, RowsStayWhereTheyAre) {
  EXPECT_EQ(ShardOfRow(0, 1000), 0u);
  EXPECT_EQ(ShardOfRow(1, 1000), 234u);
  EXPECT_EQ(ShardOfRow(2, 1000), 579u);
  EXPECT_EQ(ShardOfRow(UINT64_MAX, 1000), 471u);
}

}  // namespace
}  // namespace parasol

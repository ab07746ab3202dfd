#include "cluster/replica_sum/row_accumulator.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "cluster/rows/row_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void Add(RowAccumulator& sums, int replica, const std::vector<uint64_t>& ids,
         const std::vector<float>& gradients) {
  sums.Add(replica, reinterpret_cast<const std::byte*>(ids.data()),
           reinterpret_cast<const std::byte*>(gradients.data()), ids.size());
}

TEST(RowAccumulatorTest, ARowIsDividedByTheReplicasThatTouchIt) {
  RowAccumulator sums(2, nullptr);
  Add(sums, 0, {7, 9}, {1, 2, 3, 4});
  Add(sums, 1, {9}, {5, 6});
  Add(sums, 2, {}, {});
  const RowGradients means = sums.TakeMeans();
  EXPECT_THAT(means.ids, ElementsAre(7, 9));
  EXPECT_THAT(means.values, ElementsAre(1, 2, 4, 5));
}

TEST(RowAccumulatorTest, DuplicatesOfOneReplicaAreSummedAndCountOnce) {
  RowAccumulator sums(1, nullptr);
  Add(sums, 0, {5, 5, 5}, {1, 2, 3});
  Add(sums, 1, {5}, {2});
  const RowGradients means = sums.TakeMeans();
  EXPECT_THAT(means.ids, ElementsAre(5));
  EXPECT_THAT(means.values, ElementsAre(4));
}

TEST(RowAccumulatorTest, WhatItHoldsIsCountedAndTheNextInOrderAlwaysHasRoom) {
  // An id, its count and its element.
  constexpr size_t kRow = sizeof(uint64_t) + sizeof(uint32_t) + sizeof(float);
  const auto memory = std::make_shared<RowMemory>(3 * kRow);
  RowAccumulator sums(1, memory);
  Add(sums, 1, {5, 6, 5}, {1, 1, 1});
  EXPECT_EQ(memory->taken_bytes(), 2 * kRow);
  EXPECT_TRUE(sums.HasRoom(2, 1));
  EXPECT_FALSE(sums.HasRoom(2, 2));
  EXPECT_TRUE(sums.HasRoom(0, 1000));
  Add(sums, 0, {6}, {3});
  EXPECT_EQ(memory->taken_bytes(), 2 * kRow) << "rows 6 and 5";
  EXPECT_THAT(sums.TakeMeans().ids, ElementsAre(6, 5));
  EXPECT_EQ(memory->taken_bytes(), 0u);
}

TEST(RowAccumulatorTest, IsEmptyAfterwards) {
  RowAccumulator sums(1, nullptr);
  Add(sums, 0, {5}, {1});
  sums.TakeMeans();
  EXPECT_THAT(sums.TakeMeans().ids, IsEmpty());
}

TEST(RowAccumulatorTest, HasTheSameBitsInEveryOrderOfArrival) {
  // 1 is lost in 2^24, so that the sums depend on the order.
  const std::vector<float> gradients[] = {
      {0x1p24f, 1}, {1, 0x1p24f}, {1, 1}, {-0x1p24f, -0x1p24f}};
  std::vector<int> order(std::size(gradients));
  std::iota(order.begin(), order.end(), 0);
  RowGradients first;
  do {
    RowAccumulator sums(1, nullptr);
    for (const int replica : order) {
      Add(sums, replica, {replica % 2 == 0 ? 3u : 4u, 4u}, gradients[replica]);
    }
    const RowGradients means = sums.TakeMeans();
    if (first.ids.empty()) first = means;
    ASSERT_EQ(means.ids, first.ids);
    ASSERT_EQ(means.values, first.values) << testing::PrintToString(order);
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace parasol

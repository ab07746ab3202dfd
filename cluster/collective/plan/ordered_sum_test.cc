#include "cluster/collective/plan/ordered_sum.h"

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

std::vector<std::vector<float>> Addends(size_t number, size_t count) {
  std::mt19937 random(number * 1000 + count);
  // Sizes so different that another order gives other bits.
  std::uniform_real_distribution<float> exponent(-20, 20);
  std::vector<std::vector<float>> addends(number);
  for (std::vector<float>& addend : addends) {
    for (size_t i = 0; i < count; ++i) {
      addend.push_back(std::ldexp(exponent(random), random() % 20));
    }
  }
  return addends;
}

std::vector<float> SerialSum(const std::vector<std::vector<float>>& addends,
                             size_t count) {
  std::vector<float> sum(count);
  for (size_t i = 0; i < count && !addends.empty(); ++i) {
    float element = addends[0][i];
    for (size_t k = 1; k < addends.size(); ++k) element += addends[k][i];
    sum[i] = element;
  }
  return sum;
}

std::vector<const float*> PointersTo(
    const std::vector<std::vector<float>>& addends) {
  std::vector<const float*> pointers;
  for (const std::vector<float>& addend : addends) {
    pointers.push_back(addend.data());
  }
  return pointers;
}

TEST(OrderedSumTest, EveryNumberOfAddendsHasTheBitsOfALoop) {
  for (size_t number = 0; number <= 9; ++number) {
    for (const size_t count : {0, 1, 15, 16, 17, 1023, 1024, 1025, 4099}) {
      SCOPED_TRACE(testing::Message() << number << " x " << count);
      const auto addends = Addends(number, count);
      const std::vector<float> want = SerialSum(addends, count);
      std::vector<float> sum(count, -1);
      SumInOrder(PointersTo(addends), absl::MakeSpan(sum));
      ASSERT_EQ(0, std::memcmp(sum.data(), want.data(), count * 4));
    }
  }
}

TEST(OrderedSumTest, AnyAddendMayBeTheSum) {
  constexpr size_t kCount = 2500;
  for (size_t number = 1; number <= 7; ++number) {
    for (size_t in_place = 0; in_place < number; ++in_place) {
      SCOPED_TRACE(testing::Message() << in_place << " of " << number);
      auto addends = Addends(number, kCount);
      const std::vector<float> want = SerialSum(addends, kCount);
      SumInOrder(PointersTo(addends), absl::MakeSpan(addends[in_place]));
      ASSERT_EQ(0,
                std::memcmp(addends[in_place].data(), want.data(), kCount * 4));
    }
  }
}

TEST(OrderedSumTest, NegativeZeroOfOneAddendIsKept) {
  const float zero = -0.0f;
  const float* const addend = &zero;
  float sum = 1;
  SumInOrder({&addend, 1}, {&sum, 1});
  EXPECT_TRUE(std::signbit(sum));
}

TEST(OrderedSumTest, CopiesPastCachesAtAnyAlignment) {
  const std::vector<float> from = Addends(1, 100)[0];
  for (size_t first = 0; first < 5; ++first) {
    for (const size_t count : {0, 1, 3, 4, 5, 64, 90}) {
      std::vector<float> to(100, -1);
      CopyPastCaches(from.data() + 1, count, to.data() + first);
      EXPECT_EQ(
          std::vector<float>(to.begin() + first, to.begin() + first + count),
          std::vector<float>(from.begin() + 1, from.begin() + 1 + count));
      EXPECT_EQ(to[first + count], -1);
    }
  }
}

}  // namespace
}  // namespace parasol

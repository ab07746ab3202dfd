#include "ml/compression/random_rounding.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/row_hash.h"
#include "gtest/gtest.h"
#include "ml/compression/half_bits.h"

namespace parasol {
namespace {

std::vector<uint16_t> EncodeAll(const std::vector<float>& values,
                                uint64_t key) {
  std::vector<uint16_t> halves(values.size());
  EncodeAtRandom(values, key, reinterpret_cast<std::byte*>(halves.data()));
  return halves;
}

std::vector<float> FloatsOfAllKinds() {
  std::mt19937 random(1);
  std::vector<float> values(5000);
  // Any sign, exponent and fraction: NaNs, infinities and subnormals, too.
  for (float& value : values)
    value = std::bit_cast<float>(static_cast<uint32_t>(random()));
  values.insert(values.end(), {0.f, -0.f, INFINITY, -INFINITY, NAN,
                               std::numeric_limits<float>::max(),
                               -std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::denorm_min()});
  return values;
}

TEST(RandomRoundingTest, GivesOneOfTheTwoNeighbours) {
  for (const float value : FloatsOfAllKinds()) {
    if (!std::isfinite(value)) continue;
    for (const uint32_t random : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu}) {
      const float rounded = FloatFromBfloat16(Bfloat16FromFloat(value, random));
      ASSERT_TRUE(std::isfinite(rounded)) << value;
      ASSERT_EQ(std::signbit(rounded), std::signbit(value));
      const uint32_t distance = std::abs(std::bit_cast<int32_t>(rounded) -
                                         std::bit_cast<int32_t>(value));
      ASSERT_LT(distance, 0x10000u) << value;
    }
  }
}

TEST(RandomRoundingTest, WhatBfloat16HasStaysWhateverTheKey) {
  for (uint32_t half = 0; half <= 0xffff; ++half) {
    const float value = FloatFromBfloat16(static_cast<uint16_t>(half));
    for (const uint32_t random : {0u, 0x8000u, 0xffffu}) {
      ASSERT_EQ(std::bit_cast<uint32_t>(
                    FloatFromBfloat16(Bfloat16FromFloat(value, random))),
                std::bit_cast<uint32_t>(value));
    }
  }
}

// Exactly, over all random bits.
TEST(RandomRoundingTest, TheMeanIsTheValue) {
  for (const float value : {1.001f, -1.001f, 3.14159f, 1e-40f, -7e30f}) {
    double sum = 0;
    for (uint32_t random = 0; random <= 0xffff; ++random) {
      sum += FloatFromBfloat16(Bfloat16FromFloat(value, random));
    }
    EXPECT_EQ(sum / 65536, static_cast<double>(value));
  }
}

TEST(RandomRoundingTest, ALoopGivesTheBitsOfTheSpecification) {
  const std::vector<float> all = FloatsOfAllKinds();
  for (const size_t count :
       {size_t{0}, size_t{1}, size_t{7}, size_t{16}, size_t{33}, all.size()}) {
    const std::vector<float> values(all.end() - count, all.end());
    const uint64_t key = 0x123456789abcdef * (count + 1);
    const std::vector<uint16_t> halves = EncodeAll(values, key);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(halves[i], Bfloat16FromFloat(values[i], RandomBitsOf(key, i)))
          << i;
    }
  }
}

// Of neighbouring elements, and of keys that follow each other.
TEST(RandomRoundingTest, RandomBitsAreEvenAndIndependent) {
  constexpr int kKeys = 16384;
  constexpr uint32_t kElements = 256;
  constexpr double kCount = double{kKeys} * kElements;
  // The deviation of a mean of numbers that are even in [-.5, .5) is
  // .2887 / √n, and of a product of two .0833 / √n; 5 of them are allowed.
  const double of_mean = 5 * .2887 / std::sqrt(kCount);
  const double of_product = 5 * .0833 / std::sqrt(kCount);
  const auto number = [](uint64_t key, uint32_t i) {
    return (RandomBitsOf(RowHash(key), i) + .5) / 65536 - .5;
  };
  double sum = 0;
  std::array<double, 3> products = {};
  for (uint64_t key = 0; key < kKeys; ++key) {
    for (uint32_t i = 0; i < kElements; ++i) {
      const double here = number(key, i);
      sum += here;
      products[0] += here * number(key, i + 1);
      products[1] += here * number(key, i + 2);
      products[2] += here * number(key + 1, i);
    }
  }
  EXPECT_NEAR(sum / kCount, 0, of_mean);
  for (const double product : products) {
    EXPECT_NEAR(product / kCount, 0, of_product);
  }
}

}  // namespace
}  // namespace parasol

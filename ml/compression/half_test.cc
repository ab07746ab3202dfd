#include "ml/compression/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/compression/half_bits.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns the value of 16 bits, by the definition of the formats.
double ValueOf(job::Encoding encoding, uint16_t half) {
  const int fraction_bits = encoding == job::FLOAT16 ? 10 : 7;
  const int bias = encoding == job::FLOAT16 ? 15 : 127;
  const int top_exponent = 2 * bias + 1;
  const int exponent = (half & 0x7fff) >> fraction_bits;
  const int fraction = half & ((1 << fraction_bits) - 1);
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == top_exponent) {
    return fraction == 0 ? sign * kInfinity : NAN;
  }
  const int leading = exponent == 0 ? 0 : 1 << fraction_bits;
  return sign * std::ldexp(leading + fraction,
                           std::max(exponent, 1) - bias - fraction_bits);
}

bool IsNan(job::Encoding encoding, uint16_t half) {
  return std::isnan(ValueOf(encoding, half));
}

uint16_t InfinityOf(job::Encoding encoding) {
  return encoding == job::FLOAT16 ? 0x7c00 : 0x7f80;
}

// The nearest by search among all magnitudes, which grow with their bits; the
// infinity counts as the number that would follow the largest one.
uint16_t Nearest(job::Encoding encoding, float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(static_cast<double>(value));
  const uint16_t infinity = InfinityOf(encoding);
  uint16_t below = 0;
  for (uint16_t bit = 0x4000; bit > 0; bit >>= 1) {
    const uint16_t candidate = below | bit;
    if (candidate <= infinity && ValueOf(encoding, candidate) <= magnitude) {
      below = candidate;
    }
  }
  if (below == infinity) return sign | below;
  const double lower = ValueOf(encoding, below);
  const double upper = below + 1 == infinity
                           ? 2 * lower - ValueOf(encoding, below - 1)
                           : ValueOf(encoding, below + 1);
  const double middle = lower + (upper - lower) / 2;
  const bool up = magnitude > middle || (magnitude == middle && below % 2 == 1);
  return sign | (below + up);
}

std::vector<uint16_t> EncodeAll(job::Encoding encoding,
                                const std::vector<float>& values) {
  std::vector<uint16_t> halves(values.size());
  Encode(encoding, values, reinterpret_cast<std::byte*>(halves.data()));
  return halves;
}

std::vector<float> DecodeAll(job::Encoding encoding,
                             const std::vector<uint16_t>& halves) {
  std::vector<float> values(halves.size());
  Decode(encoding, reinterpret_cast<const std::byte*>(halves.data()),
         absl::MakeSpan(values));
  return values;
}

std::vector<uint16_t> AllHalves() {
  std::vector<uint16_t> halves(1 << 16);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = i;
  return halves;
}

uint16_t HalfFromFloat(job::Encoding encoding, float value) {
  return encoding == job::FLOAT16 ? Float16FromFloat(value)
                                  : Bfloat16FromFloat(value);
}

float FloatFromHalf(job::Encoding encoding, uint16_t half) {
  return encoding == job::FLOAT16 ? FloatFromFloat16(half)
                                  : FloatFromBfloat16(half);
}

// Every half, every midpoint of two neighbours, and the floats beside both.
std::vector<float> EdgesOfRounding(job::Encoding encoding) {
  std::vector<float> values;
  const auto add_with_neighbours = [&](float value) {
    values.push_back(value);
    values.push_back(std::nextafter(value, kInfinity));
    values.push_back(std::nextafter(value, -kInfinity));
  };
  for (const uint16_t half : AllHalves()) {
    if (IsNan(encoding, half)) continue;
    const auto value = static_cast<float>(ValueOf(encoding, half));
    add_with_neighbours(value);
    if (std::isinf(value) || IsNan(encoding, half + 1)) continue;
    const double next = ValueOf(encoding, half + 1);
    if (std::isinf(next)) continue;
    add_with_neighbours(static_cast<float>(value + (next - value) / 2));
  }
  add_with_neighbours(encoding == job::FLOAT16 ? 65520.f : 0x1.ffp127f);
  return values;
}

std::vector<float> RandomBits(size_t count) {
  std::mt19937 random(7);
  std::vector<float> values;
  while (values.size() < count) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isnan(value)) values.push_back(value);
  }
  return values;
}

class HalfTest : public ::testing::TestWithParam<job::Encoding> {
 protected:
  void ExpectNearest(const std::vector<float>& values) {
    const std::vector<uint16_t> halves = EncodeAll(GetParam(), values);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(halves[i], Nearest(GetParam(), values[i])) << values[i];
      ASSERT_EQ(HalfFromFloat(GetParam(), values[i]), halves[i]) << values[i];
    }
  }
};

TEST_P(HalfTest, EveryHalfDecodesToItsValue) {
  const std::vector<uint16_t> halves = AllHalves();
  const std::vector<float> values = DecodeAll(GetParam(), halves);
  for (const uint16_t half : halves) {
    const auto bits = std::bit_cast<uint32_t>(values[half]);
    ASSERT_EQ(std::bit_cast<uint32_t>(FloatFromHalf(GetParam(), half)), bits)
        << half;
    if (IsNan(GetParam(), half)) {
      ASSERT_TRUE(std::isnan(values[half])) << half;
      ASSERT_NE(bits & 0x400000, 0u) << half << " is not quiet";
    } else {
      ASSERT_EQ(values[half], ValueOf(GetParam(), half)) << half;
      ASSERT_EQ(std::signbit(values[half]), half >= 0x8000) << half;
    }
  }
}

TEST_P(HalfTest, EveryHalfThatIsNoSignallingNanComesBack) {
  const std::vector<uint16_t> halves = AllHalves();
  const std::vector<uint16_t> again =
      EncodeAll(GetParam(), DecodeAll(GetParam(), halves));
  const uint16_t quiet = GetParam() == job::FLOAT16 ? 0x200 : 0x40;
  for (const uint16_t half : halves) {
    ASSERT_EQ(again[half], IsNan(GetParam(), half) ? half | quiet : half);
  }
}

TEST_P(HalfTest, EdgesOfRoundingGoToTheNearestEven) {
  ExpectNearest(EdgesOfRounding(GetParam()));
}

TEST_P(HalfTest, AnyNumberGoesToTheNearest) {
  ExpectNearest(RandomBits(1 << 18));
}

// Also those whose payload is in the bits that are cut off.
TEST_P(HalfTest, NansStayQuietNans) {
  std::vector<float> nans;
  for (const uint32_t sign : {0u, kFloatSign}) {
    for (uint32_t payload = 1; payload < 1 << 23; payload <<= 1) {
      nans.push_back(std::bit_cast<float>(sign | kFloatInfinity | payload));
      nans.push_back(
          std::bit_cast<float>(sign | kFloatInfinity | ((1 << 23) - payload)));
    }
  }
  const std::vector<uint16_t> halves = EncodeAll(GetParam(), nans);
  for (size_t i = 0; i < nans.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(nans[i]);
    ASSERT_TRUE(IsNan(GetParam(), halves[i])) << bits;
    ASSERT_EQ(halves[i] >= 0x8000, bits >= kFloatSign) << bits;
    ASSERT_EQ(HalfFromFloat(GetParam(), nans[i]), halves[i]) << bits;
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, HalfTest,
                         ::testing::Values(job::FLOAT16, job::BFLOAT16),
                         [](const auto& info) {
                           return job::Encoding_Name(info.param);
                         });

TEST(EncodeTest, WhatIsBeyondFloat16BecomesAnInfinity) {
  EXPECT_THAT(EncodeAll(job::FLOAT16, {65504, 65519, 65520, 1e9f, -1e9f}),
              ElementsAre(0x7bff, 0x7bff, 0x7c00, 0x7c00, 0xfc00));
}

TEST(EncodeTest, SubnormalsAreKept) {
  EXPECT_THAT(
      EncodeAll(job::FLOAT16, {0x1p-24f, -0x1.ff8p-15f, 0x1p-25f, 0x1.8p-25f}),
      ElementsAre(1, 0x83ff, 0, 1));
  EXPECT_THAT(EncodeAll(job::BFLOAT16, {0x1p-133f, 0x1p-134f, 0x1.8p-134f}),
              ElementsAre(1, 0, 1));
}

class AlignmentTest : public ::testing::TestWithParam<job::Encoding> {};

// Lengths around a vector register's, bytes at odd addresses.
TEST_P(AlignmentTest, AnyLengthAtAnyAlignmentTouchesItsBytesOnly) {
  constexpr std::byte kUntouched{0xa5};
  for (size_t count = 0; count <= 40; ++count) {
    for (size_t offset = 1; offset <= 5; ++offset) {
      std::vector<float> values(count);
      for (size_t i = 0; i < count; ++i) values[i] = i - 3.5f;
      const size_t size = EncodedBytes(GetParam(), count);
      std::vector<std::byte> bytes(offset + size + 1, kUntouched);
      Encode(GetParam(), values, bytes.data() + offset);
      ASSERT_EQ(bytes[offset - 1], kUntouched);
      ASSERT_EQ(bytes[offset + size], kUntouched);

      std::vector<float> decoded(count + 1, 9);
      Decode(GetParam(), bytes.data() + offset,
             absl::MakeSpan(decoded).subspan(0, count));
      values.push_back(9);
      ASSERT_EQ(decoded, values) << count << " at " << offset;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, AlignmentTest,
                         ::testing::Values(job::FLOAT32, job::FLOAT16,
                                           job::BFLOAT16),
                         [](const auto& info) {
                           return job::Encoding_Name(info.param);
                         });

TEST(EncodedBytesTest, IsFourOrTwoPerValue) {
  EXPECT_EQ(EncodedBytes(job::FLOAT32, 3), 12u);
  EXPECT_EQ(EncodedBytes(job::FLOAT16, 3), 6u);
  EXPECT_EQ(EncodedBytes(job::BFLOAT16, 3), 6u);
}

}  // namespace
}  // namespace parasol

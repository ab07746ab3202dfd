#include "ml/compression/top_k.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/compression/half.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsNan;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Largest first, of equal ones the lower offset; then by offset.
std::vector<uint32_t> SortedTopK(const std::vector<float>& values,
                                 size_t kept) {
  std::vector<uint32_t> offsets(values.size());
  std::iota(offsets.begin(), offsets.end(), 0);
  const auto magnitude = [&](uint32_t i) {
    return std::isnan(values[i])
               ? std::pair<bool, float>(true, 0)
               : std::pair<bool, float>(false, std::abs(values[i]));
  };
  std::stable_sort(offsets.begin(), offsets.end(), [&](uint32_t a, uint32_t b) {
    return magnitude(a) > magnitude(b);
  });
  offsets.resize(kept);
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

std::vector<float> WholeNumbers(size_t count, int limit, std::mt19937& random) {
  std::uniform_int_distribution<int> distribution(-limit, limit);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

TEST(KeptCountTest, RoundsUpAndKeepsOneAtLeast) {
  EXPECT_EQ(KeptCount(1000, .01), 10u);
  EXPECT_EQ(KeptCount(1001, .01), 11u);
  EXPECT_EQ(KeptCount(10, 1e-9), 1u);
  EXPECT_EQ(KeptCount(10, 1), 10u);
  EXPECT_EQ(KeptCount(0, 1), 0u);
}

TEST(TopKTest, KeepsTheLargestMagnitudesAndRemembersTheRest) {
  TopK top_k;
  std::vector<float> residual = {0, 0, 4, 0, -1};
  const TopK::Kept kept = top_k.Select({1, -5, 2, 3, 0}, .4, job::FLOAT32,
                                       absl::MakeSpan(residual));
  EXPECT_THAT(kept.offsets, ElementsAre(1, 2));
  EXPECT_THAT(kept.values, ElementsAre(-5, 6));
  EXPECT_THAT(residual, ElementsAre(1, 0, 0, 3, -1));
}

TEST(TopKTest, OfEqualMagnitudesTheLowerOffsetIsSent) {
  TopK top_k;
  std::vector<float> residual(6);
  const TopK::Kept kept = top_k.Select({1, -2, 2, 3, -2, 2}, .5, job::FLOAT32,
                                       absl::MakeSpan(residual));
  EXPECT_THAT(kept.offsets, ElementsAre(1, 2, 3));
  EXPECT_THAT(residual, ElementsAre(1, 0, 0, 0, -2, 2));
}

TEST(TopKTest, NansAreSentBeforeInfinitiesAndLeaveNothing) {
  TopK top_k;
  std::vector<float> residual(4);
  const std::vector<float> gradient = {1, kInfinity, kNan, -kNan};
  const TopK::Kept kept =
      top_k.Select(gradient, .75, job::FLOAT32, absl::MakeSpan(residual));
  EXPECT_THAT(kept.offsets, ElementsAre(1, 2, 3));
  EXPECT_THAT(kept.values, ElementsAre(kInfinity, IsNan(), IsNan()));
  EXPECT_THAT(residual, ElementsAre(1, 0, 0, 0));
}

TEST(TopKTest, AllZerosSendTheFirstOnes) {
  TopK top_k;
  std::vector<float> residual(100);
  const std::vector<float> gradient(100);
  const TopK::Kept kept =
      top_k.Select(gradient, .03, job::FLOAT32, absl::MakeSpan(residual));
  EXPECT_THAT(kept.offsets, ElementsAre(0, 1, 2));
  EXPECT_THAT(residual, Each(0));
}

TEST(TopKTest, ABlockOfNothingSendsNothing) {
  EXPECT_THAT(TopK().Select({}, .5, job::FLOAT32, {}).offsets, IsEmpty());
}

TEST(TopKTest, AShareOfOneSendsEverything) {
  std::mt19937 random(1);
  const std::vector<float> gradient = WholeNumbers(1000, 1000, random);
  TopK top_k;
  std::vector<float> residual(gradient.size());
  const TopK::Kept kept =
      top_k.Select(gradient, 1, job::FLOAT32, absl::MakeSpan(residual));
  EXPECT_EQ(std::vector<float>(kept.values.begin(), kept.values.end()),
            gradient);
  EXPECT_THAT(residual, Each(0));
}

// One object for blocks of all lengths, small after large; few distinct values
// as well as many.
TEST(TopKTest, SelectsWhatASortWould) {
  std::mt19937 random(2);
  TopK top_k;
  for (const size_t count : {65536, 1, 2, 1000, 7, 4097}) {
    for (const double share : {1e-9, .01, .3, .5, .99, 1.}) {
      for (const int limit : {0, 3, 1 << 24}) {
        const std::vector<float> gradient = WholeNumbers(count, limit, random);
        std::vector<float> residual(count);
        const TopK::Kept kept = top_k.Select(gradient, share, job::FLOAT32,
                                             absl::MakeSpan(residual));
        const std::vector<uint32_t> want =
            SortedTopK(gradient, KeptCount(count, share));
        ASSERT_EQ(kept.offsets, absl::MakeConstSpan(want))
            << count << " elements, share " << share << ", limit " << limit;
      }
    }
  }
}

class ErrorFeedbackTest : public ::testing::TestWithParam<job::Encoding> {};

// Exact: sums of whole numbers below 2^24, and what rounding to 16 bits takes
// from a whole number is one.
TEST_P(ErrorFeedbackTest, WhatWasSentAndTheResidualAreTheSumOfAllGradients) {
  constexpr size_t kCount = 3000;
  std::mt19937 random(3);
  TopK top_k;
  std::vector<float> residual(kCount);
  std::vector<double> sent(kCount);
  std::vector<double> sum(kCount);
  for (int step = 0; step < 50; ++step) {
    const std::vector<float> gradient = WholeNumbers(kCount, 1000, random);
    const TopK::Kept kept =
        top_k.Select(gradient, .02, GetParam(), absl::MakeSpan(residual));
    ASSERT_EQ(kept.offsets.size(), 60u);
    ASSERT_EQ(kept.values.size(), 60u);
    for (size_t j = 0; j < kept.offsets.size(); ++j) {
      sent[kept.offsets[j]] += kept.values[j];
    }
    for (size_t i = 0; i < kCount; ++i) {
      sum[i] += gradient[i];
      ASSERT_EQ(sent[i] + residual[i], sum[i]) << "step " << step << ", " << i;
    }
  }
}

TEST_P(ErrorFeedbackTest, TheValuesAreWhatTheReceiverWillDecode) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> gradient(500);
  for (float& g : gradient) g = normal(random);
  std::vector<float> residual(gradient.size());
  TopK top_k;
  const TopK::Kept kept =
      top_k.Select(gradient, .1, GetParam(), absl::MakeSpan(residual));
  std::vector<std::byte> wire(EncodedBytes(GetParam(), kept.values.size()));
  Encode(GetParam(), kept.values, wire.data());
  std::vector<float> received(kept.values.size());
  Decode(GetParam(), wire.data(), absl::MakeSpan(received));
  EXPECT_EQ(absl::MakeConstSpan(received), kept.values);
  for (size_t j = 0; j < received.size(); ++j) {
    const uint32_t i = kept.offsets[j];
    EXPECT_EQ(received[j] + residual[i], gradient[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, ErrorFeedbackTest,
                         ::testing::Values(job::FLOAT32, job::FLOAT16,
                                           job::BFLOAT16),
                         [](const auto& info) {
                           return job::Encoding_Name(info.param);
                         });

TEST(TopKTest, WhatOverflowsFloat16IsSentAsInfinityAndLeavesNothing) {
  TopK top_k;
  std::vector<float> residual(2);
  const TopK::Kept kept =
      top_k.Select({1e6f, 1}, .5, job::FLOAT16, absl::MakeSpan(residual));
  EXPECT_THAT(kept.values, ElementsAre(kInfinity));
  EXPECT_THAT(residual, ElementsAre(0, 1));
}

}  // namespace
}  // namespace parasol

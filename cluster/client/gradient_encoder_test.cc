#include "cluster/client/gradient_encoder.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "ml/compression/half.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

// A push of elements [2, 2 + gradient.size()) of variable 1.
ShardOperation PushOf(absl::Span<const float> gradient) {
  ShardOperation operation;
  operation.ranges.push_back({.count = gradient.size(),
                              .variable = 1,
                              .offset = 2,
                              .gradient = gradient.data()});
  return operation;
}

// What a shard adds up from the payloads: offset, value, ….
void Add(const ShardOperation& operation, std::vector<float>& sum) {
  const uint32_t kept = operation.ranges[0].kept;
  std::vector<uint32_t> offsets(kept);
  std::memcpy(offsets.data(), operation.payload.get(), kept * sizeof(uint32_t));
  std::vector<float> values(kept);
  Decode(operation.encoding, operation.payload.get() + kept * sizeof(uint32_t),
         absl::MakeSpan(values));
  for (uint32_t i = 0; i < kept; ++i) sum[offsets[i]] += values[i];
}

TEST(GradientEncoderTest, Float32TravelsFromWhereItIs) {
  EXPECT_FALSE(GradientEncoder(job::FLOAT32, 1, {10}).encodes());
  EXPECT_TRUE(GradientEncoder(job::BFLOAT16, 1, {10}).encodes());
  EXPECT_TRUE(GradientEncoder(job::FLOAT32, 0.5, {10}).encodes());
}

TEST(GradientEncoderTest, AnEncodedGradientIsTheRequestsOwn) {
  GradientEncoder encoder(job::FLOAT16, 1, {0, 10});
  std::vector<float> gradient = {1, -2.5, 3};
  ShardOperation operation = PushOf(gradient);
  encoder.Encode(operation);
  gradient = {0, 0, 0};
  EXPECT_FALSE(operation.borrows_memory());
  EXPECT_FALSE(operation.sparsified);
  EXPECT_EQ(operation.bytes, 6u);
  std::vector<float> decoded(3);
  Decode(operation.encoding, operation.payload.get(), absl::MakeSpan(decoded));
  EXPECT_EQ(decoded, (std::vector<float>{1, -2.5, 3}));
}

TEST(GradientEncoderTest, WhatIsNotSentIsSentLater) {
  GradientEncoder encoder(job::FLOAT32, 0.25, {0, 10});
  const std::vector<float> gradient = {1, 2, 4, 8};
  std::vector<float> sum(4);
  for (int i = 0; i < 16; ++i) {
    ShardOperation operation = PushOf(gradient);
    encoder.Encode(operation);
    EXPECT_TRUE(operation.sparsified);
    EXPECT_EQ(operation.ranges[0].kept, 1u);
    EXPECT_EQ(operation.bytes, 8u);
    Add(operation, sum);
  }
  // Nothing gets so far behind that it would be the largest twice over.
  for (size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_NEAR(sum[i], 16 * gradient[i], 30) << i;
    EXPECT_GT(sum[i], 0) << i;
  }
}

TEST(GradientEncoderTest, EachElementKeepsItsOwnRest) {
  GradientEncoder encoder(job::FLOAT32, 0.5, {0, 4});
  const std::vector<float> gradient = {1, 5};
  ShardOperation first = PushOf(gradient);
  encoder.Encode(first);
  const std::vector<float> nothing = {0, 0};
  ShardOperation second = PushOf(nothing);
  encoder.Encode(second);
  std::vector<float> sum(2);
  Add(first, sum);
  EXPECT_EQ(sum, (std::vector<float>{0, 5}));
  Add(second, sum);
  EXPECT_EQ(sum, gradient);
}

}  // namespace
}  // namespace parasol

#include "parameters/client/gradient_encoder.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/compression/half.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using testing::ElementsAre;

ShardOperation OperationOf(bool is_push, const ShardOperation::Range& range) {
  const auto call = std::make_shared<Call>();
  call->is_push = is_push;
  return {.call = call, .subject = ShardOperation::Ranges{range}};
}

// A push of elements [2, 2 + gradient.size()) of variable 1.
ShardOperation PushOf(absl::Span<const float> gradient) {
  return OperationOf(/*is_push=*/true, {.count = gradient.size(),
                                        .variable = 1,
                                        .offset = 2,
                                        .gradient = gradient.data()});
}

// What a shard adds up from the payloads: offset, value, ….
void Add(const EncodedOperation& operation, std::vector<float>& sum) {
  const uint32_t kept = operation.kept[0];
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

TEST(GradientEncoderTest, AGradientThatIsNotEncodedIsTheCallers) {
  const std::vector<float> gradient = {1, 2, 3};
  ShardOperation exact = PushOf(gradient);
  exact.exact = true;
  EncodedOperation pushes[] = {
      GradientEncoder(job::FLOAT32, 1, {0, 10}).Encode(PushOf(gradient)),
      GradientEncoder(job::FLOAT16, 0.5, {0, 10}).Encode(exact)};
  for (const EncodedOperation& push : pushes) {
    EXPECT_TRUE(push.borrows_memory());
    EXPECT_EQ(push.encoding, job::FLOAT32);
    EXPECT_EQ(push.payloads, 1u);
    EXPECT_EQ(push.bytes, 12u);
  }
}

TEST(GradientEncoderTest, APullIsAnsweredInTheEncodingUnlessItIsExact) {
  GradientEncoder encoder(job::FLOAT16, 0.5, {0, 10});
  ShardOperation pull = OperationOf(/*is_push=*/false, {.count = 3});
  for (const bool exact : {false, true}) {
    pull.exact = exact;
    const EncodedOperation encoded = encoder.Encode(pull);
    EXPECT_EQ(encoded.encoding, exact ? job::FLOAT32 : job::FLOAT16);
    EXPECT_EQ(encoded.bytes, exact ? 12u : 6u);
    EXPECT_EQ(encoded.payloads, 0u);
    EXPECT_FALSE(encoded.borrows_memory());
  }
}

TEST(GradientEncoderTest, AnEncodedGradientIsTheRequestsOwn) {
  GradientEncoder encoder(job::FLOAT16, 1, {0, 10});
  std::vector<float> gradient = {1, -2.5, 3};
  const EncodedOperation operation = encoder.Encode(PushOf(gradient));
  gradient = {0, 0, 0};
  EXPECT_FALSE(operation.borrows_memory());
  EXPECT_TRUE(operation.kept.empty());
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
    const EncodedOperation operation = encoder.Encode(PushOf(gradient));
    EXPECT_THAT(operation.kept, ElementsAre(1));
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
  const EncodedOperation first = encoder.Encode(PushOf(gradient));
  const std::vector<float> nothing = {0, 0};
  const EncodedOperation second = encoder.Encode(PushOf(nothing));
  std::vector<float> sum(2);
  Add(first, sum);
  EXPECT_EQ(sum, (std::vector<float>{0, 5}));
  Add(second, sum);
  EXPECT_EQ(sum, gradient);
}

}  // namespace
}  // namespace parasol

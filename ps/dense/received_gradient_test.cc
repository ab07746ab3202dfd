#include "ps/dense/received_gradient.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/compression/half.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

// More than a block, and not a multiple of anything.
constexpr size_t kElements = 2 * GradientReader::kBlockElements + 77;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> SomeGradient() {
  std::vector<float> gradient(kElements);
  for (size_t i = 0; i < kElements; ++i) gradient[i] = std::sin(.1f * i);
  return gradient;
}

std::string Encoded(job::Encoding encoding, const std::vector<float>& values) {
  std::string bytes(EncodedBytes(encoding, values.size()), '\0');
  Encode(encoding, values, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

// The payload of a sparsified gradient.
std::string Kept(const std::vector<uint32_t>& offsets,
                 const std::vector<float>& values,
                 job::Encoding encoding = job::FLOAT32) {
  std::string bytes(reinterpret_cast<const char*>(offsets.data()),
                    offsets.size() * sizeof(uint32_t));
  return bytes + Encoded(encoding, values);
}

std::vector<float> Read(const ReceivedGradient& gradient, size_t max_count) {
  GradientReader reader(gradient);
  std::vector<float> elements;
  while (elements.size() < gradient.elements()) {
    const ElementRuns::Run run = reader.Next(max_count);
    EXPECT_GT(run.count, 0u);
    EXPECT_LE(run.count, max_count);
    elements.resize(elements.size() + run.count);
    std::memcpy(elements.data() + elements.size() - run.count, run.data,
                run.count * sizeof(float));
  }
  return elements;
}

TEST(ReceivedGradientTest, IsReadAsFloat32HoweverItIsEncodedAndCut) {
  const std::vector<float> gradient = SomeGradient();
  for (const job::Encoding encoding :
       {job::FLOAT32, job::FLOAT16, job::BFLOAT16}) {
    const std::string bytes = Encoded(encoding, gradient);
    std::vector<float> want(kElements);
    Decode(encoding, reinterpret_cast<const std::byte*>(bytes.data()),
           absl::MakeSpan(want));
    for (const size_t piece_bytes : {bytes.size(), size_t{1021}}) {
      const PayloadView payload = ViewOf(bytes, piece_bytes);
      const auto received =
          ReceivedGradient::Create(payload, kElements, {.encoding = encoding});
      ASSERT_OK(received);
      EXPECT_EQ(Read(*received, 3000), want) << encoding;
      EXPECT_EQ(Read(*received, SIZE_MAX), want) << encoding;
    }
  }
}

TEST(ReceivedGradientTest, SixteenBitsAreWithinTheirRoundingOfTheGradient) {
  const std::vector<float> gradient = SomeGradient();
  struct Case {
    job::Encoding encoding;
    float relative;  // half of a unit in the last place
  };
  for (const Case& c :
       {Case{job::FLOAT16, 0x1p-11f}, Case{job::BFLOAT16, 0x1p-8f}}) {
    const std::string bytes = Encoded(c.encoding, gradient);
    const PayloadView payload = ViewOf(bytes);
    const std::vector<float> read = Read(
        *ReceivedGradient::Create(payload, kElements, {.encoding = c.encoding}),
        SIZE_MAX);
    for (size_t i = 0; i < kElements; ++i) {
      // Below float16's normal numbers the error is absolute.
      const float bound =
          c.relative * std::max(std::abs(gradient[i]), 0x1p-14f);
      ASSERT_LE(std::abs(read[i] - gradient[i]), bound) << i;
    }
  }
}

TEST(ReceivedGradientTest, WhatWasNotKeptIsZero) {
  const uint32_t last = kElements - 1, block = GradientReader::kBlockElements;
  const std::string bytes =
      Kept({0, block - 1, block, last}, {1, 2, 3, 4}, job::BFLOAT16);
  const PayloadView payload = ViewOf(bytes, 5);
  std::vector<float> want(kElements);
  want[0] = 1;
  want[block - 1] = 2;
  want[block] = 3;
  want[last] = 4;
  const auto received = ReceivedGradient::Create(
      payload, kElements, {.encoding = job::BFLOAT16, .kept = 4});
  ASSERT_OK(received);
  EXPECT_EQ(Read(*received, SIZE_MAX), want);
  EXPECT_EQ(Read(*received, 1000), want);
}

TEST(ReceivedGradientTest, SkippingPassesOverElements) {
  const std::string bytes = Kept({1, 3}, {5, 6});
  const PayloadView payload = ViewOf(bytes);
  const auto received = ReceivedGradient::Create(payload, 4, {.kept = 2});
  ASSERT_OK(received);
  GradientReader reader(*received);
  reader.Skip(3);
  const ElementRuns::Run run = reader.Next(9);
  ASSERT_EQ(run.count, 1u);
  float element;
  std::memcpy(&element, run.data, sizeof(element));
  EXPECT_EQ(element, 6);
}

TEST(ReceivedGradientTest, BytesThatAreNoGradientAreRefused) {
  struct Case {
    std::string name;
    std::string bytes;
    ReceivedGradient::Form form;
  };
  const Case cases[] = {
      {"too short", Floats(3, 1), {}},
      {"too long", Floats(5, 1), {}},
      {"other encoding", Floats(4, 1), {.encoding = job::FLOAT16}},
      {"kept more than there are",
       Kept({0, 1, 2, 3, 4}, {1, 1, 1, 1, 1}),
       {.kept = 5}},
      {"kept another number", Kept({0, 1}, {1, 1}), {.kept = 3}},
      {"kept number overflows", Kept({0}, {1}), {.kept = 0x20000001}},
      {"offset too large", Kept({0, 4}, {1, 1}), {.kept = 2}},
      {"offset twice", Kept({1, 1}, {1, 1}), {.kept = 2}},
      {"offsets descend", Kept({2, 1}, {1, 1}), {.kept = 2}},
  };
  for (const Case& c : cases) {
    const PayloadView payload = ViewOf(c.bytes);
    EXPECT_THAT(ReceivedGradient::Create(payload, 4, c.form).status(),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << c.name;
  }
}

TEST(ReceivedGradientTest, NamesTheFirstElementThatIsNotFinite) {
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    for (const size_t at : {size_t{0}, size_t{4097}, kElements - 1}) {
      std::vector<float> gradient = SomeGradient();
      gradient[at] = bad;
      gradient[kElements - 1] = bad;
      for (const job::Encoding encoding :
           {job::FLOAT32, job::FLOAT16, job::BFLOAT16}) {
        const std::string bytes = Encoded(encoding, gradient);
        const PayloadView payload = ViewOf(bytes, 1021);
        EXPECT_THAT(
            ReceivedGradient::Create(payload, kElements, {.encoding = encoding})
                ->FirstNonFinite(),
            Optional(at));
      }
    }
  }
}

TEST(ReceivedGradientTest, TheLargestFiniteNumbersAreFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::string bytes = Encoded(job::FLOAT32, {kMax, -kMax, 0, -0.0f});
  const PayloadView payload = ViewOf(bytes);
  EXPECT_EQ(ReceivedGradient::Create(payload, 4, {})->FirstNonFinite(),
            std::nullopt);
}

TEST(ReceivedGradientTest, ASparsifiedOneNamesTheElementOfTheRange) {
  const std::string bytes = Kept({2, 7}, {1, kInfinity});
  const PayloadView payload = ViewOf(bytes);
  EXPECT_THAT(
      ReceivedGradient::Create(payload, 9, {.kept = 2})->FirstNonFinite(),
      Optional(7u));
}

}  // namespace
}  // namespace parasol

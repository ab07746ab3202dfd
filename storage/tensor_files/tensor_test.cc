#include "storage/tensor_files/tensor.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::vector<char> BytesOfAll(const std::vector<T>& values) {
  std::vector<char> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T>
std::vector<float> Floats(ElementType type, const std::vector<T>& values) {
  std::vector<float> out(values.size());
  ToFloat32(type, BytesOfAll(values), absl::MakeSpan(out));
  return out;
}

TEST(TensorTest, HalfFloatsOfEachKindBecomeFloat32) {
  // 1, -2, the smallest, the largest, infinity.
  EXPECT_THAT(Floats<uint16_t>(ElementType::kFloat16,
                               {0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00}),
              ElementsAre(1, -2, 0x1p-24f, 65504, INFINITY));
  EXPECT_TRUE(
      std::signbit(Floats<uint16_t>(ElementType::kFloat16, {0x8000}).front()));
  EXPECT_TRUE(
      std::isnan(Floats<uint16_t>(ElementType::kFloat16, {0x7e00}).front()));
  EXPECT_THAT(Floats<uint16_t>(ElementType::kBfloat16, {0x3f80, 0xc049}),
              ElementsAre(1, -3.140625f));
}

TEST(TensorTest, WiderNumbersAreRounded) {
  EXPECT_THAT(Floats<double>(ElementType::kFloat64, {0.1, 1e300}),
              ElementsAre(0.1f, INFINITY));
  EXPECT_THAT(Floats<int64_t>(ElementType::kInt64, {-16777217}),
              ElementsAre(-16777216));
}

TEST(TensorTest, NegativeIdsAreThoseOfTheirBits) {
  std::vector<uint64_t> ids(2);
  ToUint64(ElementType::kInt64, BytesOfAll(std::vector<int64_t>{-1, 5}),
           absl::MakeSpan(ids));
  EXPECT_THAT(ids, ElementsAre(UINT64_MAX, 5));
  ToUint64(ElementType::kInt32, BytesOfAll(std::vector<int32_t>{-1, 5}),
           absl::MakeSpan(ids));
  EXPECT_THAT(ids, ElementsAre(UINT64_MAX, 5));
}

TEST(TensorTest, ImpossibleShapesAreRefused) {
  EXPECT_THAT(CountElements({2, 3}), IsOkAndHolds(6));
  EXPECT_THAT(CountElements({}), IsOkAndHolds(1));
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{-1}, {INT64_MAX, 3}, {1 << 30, 1 << 30, 2}}) {
    EXPECT_THAT(
        CountBytes(
            {.name = "w", .type = ElementType::kFloat32, .shape = shape}),
        StatusIs(absl::StatusCode::kDataLoss, HasSubstr("tensor w")));
  }
}

TEST(TensorTest, PartIsNamedByItsNumber) {
  TensorPart part = WholeTensor(
      {.name = "w", .type = ElementType::kFloat32, .shape = {5, 2}});
  EXPECT_EQ(part.AsTensor(), part.tensor);
  part.part = 1;
  part.parts = 3;
  part.rows = 2;
  EXPECT_EQ(part.AsTensor().name, "w.part-00001-of-00003");
  EXPECT_THAT(part.AsTensor().shape, ElementsAre(2, 2));
}

}  // namespace
}  // namespace parasol

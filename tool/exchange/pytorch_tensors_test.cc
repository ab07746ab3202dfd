#include "tool/exchange/pytorch_tensors.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tool/testing/counting_tensors.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CheckpointContents Variables(const std::vector<std::string>& names) {
  CheckpointContents contents;
  for (const std::string& name : names) {
    contents.variables.emplace_back().set_name(name);
  }
  return contents;
}

absl::StatusOr<std::unique_ptr<TensorReader>> Translate(
    std::vector<TensorInfo> tensors, const std::vector<std::string>& variables,
    const std::map<std::string, RowOrder>& orders = {}) {
  return TranslatePyTorch(std::make_unique<CountingTensors>(std::move(tensors)),
                          Variables(variables), orders);
}

// Elements [first, first + count) of a tensor.
std::vector<float> Elements(TensorReader& reader, size_t tensor, size_t first,
                            size_t count) {
  std::vector<float> values(count);
  EXPECT_OK(reader.Read(tensor, first * sizeof(float),
                        absl::MakeSpan(reinterpret_cast<char*>(values.data()),
                                       count * sizeof(float))));
  return values;
}

TEST(PyTorchTensorsTest, DenseKernelIsTransposed) {
  ASSERT_OK_AND_ASSIGN(
      const auto reader,
      Translate({{"a.hidden.weight", ElementType::kFloat32, {2, 3}},
                 {"a.hidden.bias", ElementType::kFloat32, {2}}},
                {"a/hidden/kernel", "a/hidden/bias"}));
  EXPECT_EQ(reader->tensors()[0].name, "a/hidden/kernel");
  EXPECT_THAT(reader->tensors()[0].shape, ElementsAre(3, 2));
  EXPECT_THAT(Elements(*reader, 0, 0, 6), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(Elements(*reader, 0, 3, 2), ElementsAre(4, 2));
  EXPECT_EQ(reader->tensors()[1].name, "a/hidden/bias");
  EXPECT_THAT(Elements(*reader, 1, 0, 2), ElementsAre(0, 1));
}

TEST(PyTorchTensorsTest, ConvolutionsOutputsComeLast) {
  ASSERT_OK_AND_ASSIGN(
      const auto reader,
      Translate({{"conv.weight", ElementType::kFloat32, {2, 3, 1, 2}}},
                {"conv/kernel"}));
  EXPECT_THAT(reader->tensors()[0].shape, ElementsAre(1, 2, 3, 2));
  // Element [0, w, i, o] is [o, i, 0, w] there: 6 · o + 2 · i + w.
  EXPECT_THAT(Elements(*reader, 0, 0, 12),
              ElementsAre(0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11));
}

TEST(PyTorchTensorsTest, ConvolutionsOverStepsHaveTheirStepsLastThere) {
  ASSERT_OK_AND_ASSIGN(
      const auto reader,
      Translate({{"conv.weight", ElementType::kFloat32, {2, 3, 2}},
                 {"a.query.weight", ElementType::kFloat32, {2, 3, 2}}},
                {"conv/kernel", "a/query/kernel"}));
  EXPECT_THAT(reader->tensors()[0].shape, ElementsAre(2, 3, 2));
  // Element [s, i, o] is [o, i, s] there: 6 · o + 2 · i + s.
  EXPECT_THAT(Elements(*reader, 0, 0, 12),
              ElementsAre(0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11));
  EXPECT_THAT(Elements(*reader, 1, 0, 3), ElementsAre(0, 1, 2));
}

TEST(PyTorchTensorsTest, NormalizationsHaveOtherNames) {
  ASSERT_OK_AND_ASSIGN(
      const auto reader,
      Translate({{"bn.weight", ElementType::kFloat32, {4}},
                 {"bn.running_var", ElementType::kFloat32, {4}}},
                {"bn/gamma", "bn/moving_variance"}));
  EXPECT_EQ(reader->tensors()[0].name, "bn/gamma");
  EXPECT_EQ(reader->tensors()[1].name, "bn/moving_variance");
}

TEST(PyTorchTensorsTest, WhatHasTheJobsNameStays) {
  const std::vector<TensorInfo> tensors = {
      {"hidden/kernel", ElementType::kFloat32, {3, 2}},
      {"hidden.weight", ElementType::kFloat32, {2, 3}}};
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       Translate(tensors, {"hidden/kernel"}));
  EXPECT_EQ(reader->tensors(), tensors);
}

TEST(PyTorchTensorsTest, RowsBehindAFlattenedImageGetTheJobsOrder) {
  ASSERT_OK_AND_ASSIGN(
      const auto reader,
      Translate({{"hidden.weight", ElementType::kFloat32, {2, 3}},
                 {"bn.running_mean", ElementType::kFloat32, {3}}},
                {"hidden/kernel", "bn/moving_mean"},
                {{"hidden/kernel", {2, 0, 1}}, {"bn/moving_mean", {2, 0, 1}}}));
  EXPECT_THAT(Elements(*reader, 0, 0, 6), ElementsAre(2, 5, 0, 3, 1, 4));
  EXPECT_THAT(Elements(*reader, 1, 0, 3), ElementsAre(2, 0, 1));
}

TEST(PyTorchTensorsTest, AnOrderThatIsNotKnownIsRefused) {
  const std::map<std::string, RowOrder> unknown = {{"hidden/kernel", {}}};
  EXPECT_THAT(
      Translate({{"hidden.weight", ElementType::kFloat32, {2, 3}}},
                {"hidden/kernel"}, unknown)
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("hidden/kernel: stands behind a flattened image")));
  // In the job's own order and names it is fine.
  EXPECT_OK(Translate({{"hidden/kernel", ElementType::kFloat32, {2, 3}}},
                      {"hidden/kernel"}, unknown));
}

}  // namespace
}  // namespace parasol

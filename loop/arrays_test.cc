#include "loop/arrays.h"

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/dataset.h"
#include "storage/tensor_files/npy_header.h"
#include "storage/tensor_files/npz_writer.h"

namespace parasol::loop {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string BytesOfAll(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

std::string WriteNpy(const TensorInfo& info, const std::string& bytes) {
  const std::string path = testing::TempDir() + "/array.npy";
  std::ofstream(path, std::ios::binary) << NpyHeader(info) << bytes;
  return path;
}

TEST(ArraysTest, AnArchivesArraysAreTensorsByName) {
  const std::string path = testing::TempDir() + "/arrays.npz";
  const auto writer =
      NewNpzWriter(path, {WholeTensor({"x", ElementType::kFloat64, {2, 1, 2}}),
                          WholeTensor({"y", ElementType::kUint8, {2}}),
                          WholeTensor({"none", ElementType::kInt16, {0, 3}})});
  ASSERT_OK(writer.status());
  ASSERT_OK((*writer)->Append(BytesOfAll<double>({1, -2.5, 3, 4})));
  ASSERT_OK((*writer)->Append(BytesOfAll<uint8_t>({255, 1})));
  ASSERT_OK((*writer)->Finish());

  ASSERT_OK_AND_ASSIGN(const auto arrays, LoadNpz(path));
  ASSERT_EQ(arrays.size(), 3);
  EXPECT_EQ(arrays.at("x").shape().ToString(), "[2, 1, 2]");
  EXPECT_THAT(arrays.at("x").values(), ElementsAre(1, -2.5, 3, 4));
  EXPECT_THAT(arrays.at("y").ints(), ElementsAre(255, 1));
  EXPECT_EQ(arrays.at("none").shape().ToString(), "[0, 3]");
  EXPECT_OK(Dataset::FromTensors({arrays.at("x"), arrays.at("y")}).status());
}

TEST(ArraysTest, ALongArrayIsReadInPieces) {
  std::vector<int32_t> values(200'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
  ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                       LoadNpy(WriteNpy({"", ElementType::kInt32, {200'000}},
                                        BytesOfAll(values))));
  for (int64_t i = 0; i < tensor.size(); ++i) ASSERT_EQ(tensor.ints()[i], i);
}

TEST(ArraysTest, WhatIsNoTensorIsNamed) {
  EXPECT_THAT(LoadNpz("/nowhere.npz"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(
      LoadNpy(WriteNpy(
          {"", ElementType::kUint64, {1}},
          BytesOfAll<uint64_t>({std::numeric_limits<uint64_t>::max()}))),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("array.npy"),
                     HasSubstr("18446744073709551615 is beyond int64"))));
  EXPECT_THAT(LoadNpy(WriteNpy({"", ElementType::kOther, {1}}, "abcd")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a type that is not read")));
}

}  // namespace
}  // namespace parasol::loop

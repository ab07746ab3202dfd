#include "cluster/checkpoint/warm_tensors.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/tensor_files/npz_writer.h"
#include "storage/tensor_files/safetensors_writer.h"
#include "storage/tensor_files/tensor_bundle.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
absl::string_view BytesOfAll(const std::vector<T>& values) {
  return absl::string_view(reinterpret_cast<const char*>(values.data()),
                           values.size() * sizeof(T));
}

// A kernel, the step, and a table of two parts.
std::vector<TensorPart> Parts() {
  const TensorInfo ids = {"users/ids", ElementType::kUint64, {3}};
  const TensorInfo rows = {"users/rows", ElementType::kFloat32, {3, 2}};
  return {WholeTensor({"hidden/kernel", ElementType::kFloat32, {2, 2}}),
          WholeTensor({"global_step", ElementType::kInt64, {}}),
          {.tensor = ids, .rows = 2, .parts = 2},
          {.tensor = rows, .rows = 2, .parts = 2},
          {.tensor = ids, .first_row = 2, .rows = 1, .part = 1, .parts = 2},
          {.tensor = rows, .first_row = 2, .rows = 1, .part = 1, .parts = 2}};
}

void WriteAll(absl::StatusOr<std::unique_ptr<TensorWriter>> writer,
              uint64_t last_id = 9) {
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->Append(BytesOfAll<float>({1, 2, 3, 4})));
  ASSERT_OK((*writer)->Append(BytesOfAll<int64_t>({50})));
  ASSERT_OK((*writer)->Append(BytesOfAll<uint64_t>({7, 8})));
  ASSERT_OK((*writer)->Append(BytesOfAll<float>({.5, 1, 1.5, 2})));
  ASSERT_OK((*writer)->Append(BytesOfAll<uint64_t>({last_id})));
  ASSERT_OK((*writer)->Append(BytesOfAll<float>({2.5, 3})));
  ASSERT_OK((*writer)->Finish());
}

std::string PathOf(const std::string& name) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/warm");
  std::filesystem::create_directories(directory + "/tf");
  return absl::StrCat(directory, "/", name);
}

TEST(WarmTensorsTest, EveryFormatHasTheVariablesAndTables) {
  WriteAll(NewSafetensorsWriter(PathOf("a.safetensors"), Parts()));
  WriteAll(NewNpzWriter(PathOf("a.npz"), Parts()));
  WriteAll(NewTensorBundleWriter(PathOf("tf/ckpt"), Parts()));
  for (const char* const name :
       {"a.safetensors", "a.npz", "tf/ckpt", "tf/ckpt.index", "tf"}) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WarmSource> source,
                         WarmSource::Open(PathOf(name)));
    ASSERT_EQ(source->variables().size(), 1);
    EXPECT_EQ(source->variables()[0].name, "hidden/kernel");
    EXPECT_THAT(source->variables()[0].shape, ElementsAre(2, 2));
    std::vector<float> values(2);
    ASSERT_OK(source->Read(0, 1, absl::MakeSpan(values)));
    EXPECT_THAT(values, ElementsAre(2, 3));
    ASSERT_EQ(source->tables().size(), 1);
    EXPECT_EQ(source->tables()[0].name, "users");
    EXPECT_EQ(source->tables()[0].width, 2);
    std::map<uint64_t, std::vector<float>> rows;
    ASSERT_OK(source->VisitRows(
        0, [&](absl::Span<const uint64_t> ids, absl::Span<const float> values) {
          for (size_t i = 0; i < ids.size(); ++i) {
            rows[ids[i]] = {values[2 * i], values[2 * i + 1]};
          }
          return absl::OkStatus();
        }));
    EXPECT_EQ(rows, (std::map<uint64_t, std::vector<float>>{
                        {7, {.5, 1}}, {8, {1.5, 2}}, {9, {2.5, 3}}}));
    EXPECT_OK(source->Verify());
  }
}

TEST(WarmTensorsTest, EmbeddingsOfKerasAreATableWithTheIdsInOrder) {
  absl::StatusOr<std::unique_ptr<TensorWriter>> writer = NewSafetensorsWriter(
      PathOf("keras.safetensors"),
      {WholeTensor({"users/embeddings", ElementType::kFloat32, {3, 2}})});
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->Append(BytesOfAll<float>({1, 2, 3, 4, 5, 6})));
  ASSERT_OK((*writer)->Finish());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WarmSource> source,
                       WarmSource::Open(PathOf("keras.safetensors")));
  ASSERT_EQ(source->tables().size(), 1);
  EXPECT_EQ(source->tables()[0].name, "users");
  EXPECT_EQ(source->tables()[0].variable, 0);
  EXPECT_EQ(source->variables()[0].name, "users/embeddings");
  std::map<uint64_t, float> first_of_row;
  ASSERT_OK(source->VisitRows(
      0, [&](absl::Span<const uint64_t> ids, absl::Span<const float> values) {
        for (size_t i = 0; i < ids.size(); ++i) {
          first_of_row[ids[i]] = values[2 * i];
        }
        return absl::OkStatus();
      }));
  EXPECT_EQ(first_of_row, (std::map<uint64_t, float>{{0, 1}, {1, 3}, {2, 5}}));
}

TEST(WarmTensorsTest, AnIdThatIsThereTwiceIsNamed) {
  WriteAll(NewSafetensorsWriter(PathOf("twice.safetensors"), Parts()),
           /*last_id=*/7);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WarmSource> source,
                       WarmSource::Open(PathOf("twice.safetensors")));
  EXPECT_THAT(source->VisitRows(0, [](auto, auto) { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("users/ids has id 7 twice")));
}

TEST(WarmTensorsTest, WhatCannotBeOpenedIsAFaultOfTheJob) {
  std::ofstream(PathOf("broken.safetensors")) << "no tensors";
  std::ofstream(PathOf("weights.h5")) << "Keras's own";
  for (const char* const name : {"broken.safetensors", "none.safetensors",
                                 "none.npz", "none", "weights.h5"}) {
    EXPECT_THAT(WarmSource::Open(PathOf(name)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
  }
}

}  // namespace
}  // namespace parasol

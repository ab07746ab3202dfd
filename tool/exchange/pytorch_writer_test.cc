#include "tool/exchange/pytorch_writer.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/tensor_files/tensor_reader.h"
#include "tool/exchange/pytorch_tensors.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Tensors of a file, in memory.
struct Written {
  std::vector<TensorInfo> tensors = {};
  std::vector<std::string> bytes = {};
};

class MemoryWriter : public TensorWriter {
 public:
  MemoryWriter(std::vector<TensorPart> parts, Written& out)
      : TensorWriter(std::move(parts)), out_(out) {}

 protected:
  absl::Status BeginPart(const TensorPart& part) override {
    out_.tensors.push_back(part.AsTensor());
    out_.bytes.emplace_back();
    return absl::OkStatus();
  }
  absl::Status WriteElements(absl::string_view bytes) override {
    out_.bytes.back().append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  absl::Status EndPart(const TensorPart&) override { return absl::OkStatus(); }
  absl::Status Commit() override { return absl::OkStatus(); }

 private:
  Written& out_;
};

class MemoryReader : public TensorReader {
 public:
  explicit MemoryReader(const Written& file) : file_(file) {}
  const std::vector<TensorInfo>& tensors() const override {
    return file_.tensors;
  }
  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    file_.bytes[tensor].copy(out.data(), out.size(), first);
    return absl::OkStatus();
  }

 private:
  const Written file_;
};

absl::StatusOr<Written> Write(const std::vector<TensorInfo>& tensors,
                              const std::map<std::string, RowOrder>& orders) {
  std::vector<TensorPart> parts;
  for (const TensorInfo& tensor : tensors) parts.push_back(WholeTensor(tensor));
  Written written;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<TensorWriter> writer,
      NewPyTorchWriter(parts, orders, [&](std::vector<TensorPart> there) {
        return absl::StatusOr<std::unique_ptr<TensorWriter>>(
            std::make_unique<MemoryWriter>(std::move(there), written));
      }));
  for (const TensorInfo& tensor : tensors) {
    const uint64_t count = CountElements(tensor.shape).value_or(0);
    // Elements 0, 1, …, one by one.
    for (uint64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(i);
      RETURN_IF_ERROR(writer->Append(absl::string_view(
          reinterpret_cast<const char*>(&value), sizeof(value))));
    }
  }
  RETURN_IF_ERROR(writer->Finish());
  return written;
}

std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  bytes.copy(reinterpret_cast<char*>(values.data()), bytes.size());
  return values;
}

constexpr ElementType kFloat = ElementType::kFloat32;

TEST(PyTorchWriterTest, NamesAxesAndRowsAreThoseOfAStateDict) {
  ASSERT_OK_AND_ASSIGN(
      const Written written,
      Write({{"a/hidden/kernel", kFloat, {3, 2}},
             {"conv/kernel", kFloat, {1, 2, 3, 2}},
             {"bn/moving_mean", kFloat, {3}},
             {"users/rows", kFloat, {2, 2}}},
            {{"a/hidden/kernel", {2, 0, 1}}, {"bn/moving_mean", {2, 0, 1}}}));
  ASSERT_EQ(written.tensors.size(), 4u);
  EXPECT_EQ(written.tensors[0].name, "a.hidden.weight");
  EXPECT_THAT(written.tensors[0].shape, ElementsAre(2, 3));
  // Row 0 here is column 2 there.
  EXPECT_THAT(Floats(written.bytes[0]), ElementsAre(2, 4, 0, 3, 5, 1));
  EXPECT_EQ(written.tensors[1].name, "conv.weight");
  EXPECT_THAT(written.tensors[1].shape, ElementsAre(2, 3, 1, 2));
  EXPECT_THAT(Floats(written.bytes[1]),
              ElementsAre(0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11));
  EXPECT_EQ(written.tensors[2].name, "bn.running_mean");
  EXPECT_THAT(Floats(written.bytes[2]), ElementsAre(1, 2, 0));
  EXPECT_EQ(written.tensors[3].name, "users/rows");
  EXPECT_THAT(Floats(written.bytes[3]), ElementsAre(0, 1, 2, 3));
}

TEST(PyTorchWriterTest, WhatIsReadAgainIsTheSame) {
  const std::vector<TensorInfo> tensors = {
      {"hidden/kernel", kFloat, {6, 4}},
      {"conv/kernel", kFloat, {3, 2, 5, 4}},
      {"bn/gamma", kFloat, {6}}};
  const std::map<std::string, RowOrder> orders = {
      {"hidden/kernel", {0, 3, 1, 4, 2, 5}}, {"bn/gamma", {0, 3, 1, 4, 2, 5}}};
  ASSERT_OK_AND_ASSIGN(const Written written, Write(tensors, orders));
  CheckpointContents contents;
  for (const TensorInfo& tensor : tensors) {
    contents.variables.emplace_back().set_name(tensor.name);
  }
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       TranslatePyTorch(std::make_unique<MemoryReader>(written),
                                        contents, orders));
  EXPECT_EQ(reader->tensors(), tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::string bytes(written.bytes[i].size(), '\0');
    ASSERT_OK(reader->Read(i, 0, absl::MakeSpan(bytes)));
    const std::vector<float> values = Floats(bytes);
    for (size_t j = 0; j < values.size(); ++j) EXPECT_EQ(values[j], j);
  }
}

TEST(PyTorchWriterTest, NamesThatMeetAndUnknownOrdersAreRefused) {
  EXPECT_THAT(
      Write({{"x/kernel", kFloat, {1, 1}}, {"x/gamma", kFloat, {1}}}, {})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("would be called x.weight")));
  EXPECT_THAT(
      Write({{"x/kernel", kFloat, {1, 1}}}, {{"x/kernel", {}}}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x/kernel")));
}

}  // namespace
}  // namespace parasol

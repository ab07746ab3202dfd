#include "tool/publish/bfloat16_writer.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/byte_order.h"
#include "storage/tensor_files/safetensors_reader.h"
#include "storage/tensor_files/safetensors_writer.h"

namespace parasol {
namespace {

// Bits of a float32, and of the bfloat16 that it is rounded to.
struct Rounding {
  uint32_t from;
  uint16_t to;
};

TEST(Bfloat16WriterTest, FloatsAreRoundedToNearestTiesToEven) {
  const std::vector<Rounding> roundings = {
      {0x3f800000, 0x3f80},   // 1
      {0x3f807fff, 0x3f80},   // just below a tie
      {0x3f808000, 0x3f80},   // ties
      {0x3f818000, 0x3f82},   //
      {0x3f808001, 0x3f81},   // just above one
      {0xbf818000, 0xbf82},   // negative
      {0x7f7fffff, 0x7f80},   // rounds up to an infinity
      {0x7f800000, 0x7f80},   // an infinity
      {0x00000001, 0x0000},   // subnormal
      {0x80000000, 0x8000}};  // -0
  const int64_t count = static_cast<int64_t>(roundings.size());
  const std::string path = EmptyTestDirectory() + "/rounded";
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<TensorWriter> writer,
      NewBfloat16Writer(
          {WholeTensor({.name = "values",
                        .type = ElementType::kFloat32,
                        .shape = {count}}),
           WholeTensor(
               {.name = "ids", .type = ElementType::kUint64, .shape = {1}})},
          [&path](std::vector<TensorPart> parts) {
            return NewSafetensorsWriter(path, std::move(parts));
          }));
  std::string values;
  std::string rounded;
  for (const auto& [from, to] : roundings) {
    AppendLittleEndian(values, from);
    AppendLittleEndian(rounded, to);
  }
  // In two pieces.
  ASSERT_OK(writer->Append(values.substr(0, 12)));
  ASSERT_OK(writer->Append(values.substr(12)));
  ASSERT_OK(writer->Append("12345678"));
  ASSERT_OK(writer->Finish());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TensorReader> reader,
                       OpenSafetensors(path));
  ASSERT_EQ(reader->tensors().size(), 2);
  EXPECT_EQ(reader->tensors()[0], (TensorInfo{.name = "values",
                                              .type = ElementType::kBfloat16,
                                              .shape = {count}}));
  std::string read(rounded.size(), 0);
  ASSERT_OK(reader->Read(0, 0, absl::MakeSpan(read)));
  EXPECT_EQ(read, rounded);
  EXPECT_EQ(reader->tensors()[1].type, ElementType::kUint64);
  read.resize(8);
  ASSERT_OK(reader->Read(1, 0, absl::MakeSpan(read)));
  EXPECT_EQ(read, "12345678");
}

}  // namespace
}  // namespace parasol

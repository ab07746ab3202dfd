#include "storage/row_entry.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/byte_order.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Header(int64_t updates, uint32_t count, uint32_t floats) {
  std::string bytes;
  AppendLittleEndian(bytes, updates);
  AppendLittleEndian(bytes, count);
  AppendLittleEndian(bytes, floats);
  return bytes;
}

TEST(RowEntryTest, DecodingGivesWhatWasEncoded) {
  const std::vector<uint64_t> ids = {0, UINT64_MAX};
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  std::string value = "?";
  ASSERT_TRUE(EncodeRows({.updates = 7, .ids = ids, .rows = rows}, value));
  const auto header = ParseRowsHeader(value);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->floats, 3u);

  DecodedRows decoded;
  decoded.Assign(*header, value);
  EXPECT_EQ(decoded.batch().updates, 7);
  EXPECT_THAT(decoded.batch().ids, ElementsAre(0, UINT64_MAX));
  EXPECT_THAT(decoded.batch().rows, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(RowEntryTest, NoRowsAreAnEntry) {
  std::string value;
  ASSERT_TRUE(EncodeRows({.updates = 7}, value));
  const auto header = ParseRowsHeader(value);
  ASSERT_TRUE(header.has_value());
  DecodedRows decoded;
  decoded.Assign(*header, value);
  EXPECT_EQ(decoded.batch().updates, 7);
  EXPECT_THAT(decoded.batch().ids, IsEmpty());
}

TEST(RowEntryTest, OtherBytesAreRefused) {
  const std::string ten(10, 'x');
  EXPECT_FALSE(ParseRowsHeader("").has_value());
  EXPECT_FALSE(ParseRowsHeader(Header(0, 0, 0).substr(1)).has_value());
  EXPECT_FALSE(ParseRowsHeader(Header(0, 0, 1)).has_value());
  EXPECT_FALSE(ParseRowsHeader(Header(0, 0, 0) + "x").has_value());
  EXPECT_FALSE(ParseRowsHeader(Header(0, 1, 1)).has_value());
  EXPECT_FALSE(ParseRowsHeader(Header(-1, 0, 0)).has_value());
  EXPECT_FALSE(ParseRowsHeader(Header(0, 1, 0) + ten.substr(2)).has_value());
  // Billions of rows announced, ten bytes there.
  EXPECT_FALSE(
      ParseRowsHeader(Header(0, UINT32_MAX, UINT32_MAX) + ten).has_value());
}

}  // namespace
}  // namespace parasol

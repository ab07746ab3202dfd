#include "ml/input/arrow/row_format.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/record/record_reader.h"
#include "ml/input/record/records.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string OneRow() {
  std::string out;
  RowWriter rows(out);
  rows.Begin();
  rows.Varint(0);
  rows.Varint(1);
  rows.Kind(RowKind::kDouble, false);
  rows.Value(0.1);
  rows.Varint(3);
  rows.Kind(RowKind::kText, true);
  rows.Bits(3, [](uint64_t i) { return i != 1; });
  rows.Text("");
  rows.Text(std::string(300, 'x'));
  rows.End();
  return out;
}

std::vector<std::string> RowsIn(const std::string& bytes) {
  Records records(Records::Content::kBinary);
  records.AddFile("rows", bytes);
  records.AddAll(RowFormat(), 0, /*is_cut=*/false);
  RecordReader reader(records);
  std::vector<std::string> rows;
  for (int64_t i = 0; i < records.size(); ++i) {
    const auto row = reader.Read(i);
    rows.push_back(row.ok() ? std::string(*row) : "broken");
  }
  return rows;
}

TEST(RowFormatTest, ARowIsReadAsItWasWritten) {
  const std::vector<std::string> rows = RowsIn(OneRow());
  ASSERT_THAT(rows, SizeIs(1));
  ColumnValues values(3);
  ASSERT_OK(ReadRow(rows.front(), values));
  EXPECT_THAT(values[0], IsEmpty());
  ASSERT_THAT(values[1], SizeIs(1));
  EXPECT_EQ(values[1].front().AsNumber(), 0.1);
  ASSERT_THAT(values[2], SizeIs(3));
  char buffer[FieldValue::kMaxNumberBytes];
  EXPECT_FALSE(values[2][0].is_missing());
  EXPECT_EQ(values[2][0].AsText(buffer), "");
  EXPECT_TRUE(values[2][1].is_missing());
  EXPECT_EQ(values[2][2].AsText(buffer), std::string(300, 'x'));
}

TEST(RowFormatTest, ABrokenRowIsOneRecordAmongTheOthers) {
  std::string bytes = OneRow();
  RowWriter(bytes).AddBroken();
  bytes += OneRow();
  const std::vector<std::string> rows = RowsIn(bytes);
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[1], "broken");
  EXPECT_EQ(rows[0], rows[2]);
}

TEST(RowFormatTest, ARowThatIsTakenBackLeavesNothing) {
  std::string bytes = OneRow();
  const std::string before = bytes;
  RowWriter rows(bytes);
  rows.Begin();
  rows.Varint(1);
  rows.TakeBack();
  EXPECT_EQ(bytes, before);
}

TEST(RowFormatTest, OtherBytesAreAnErrorOrValues) {
  const std::string row = RowsIn(OneRow()).front();
  ColumnValues values(3);
  EXPECT_THAT(ReadRow(row.substr(0, row.size() - 1), values),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the row is")));
  EXPECT_THAT(ReadRow(row + "x", values),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the row is")));
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string changed = row;
    changed[random() % 20] = static_cast<char>(random());
    changed.resize(random() % (row.size() + 1));
    ReadRow(changed, values).IgnoreError();
  }
}

}  // namespace
}  // namespace parasol

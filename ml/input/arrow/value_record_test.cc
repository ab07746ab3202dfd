#include "ml/input/arrow/value_record.h"

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

std::string OneRecord() {
  std::string out;
  ValueRecordWriter records(out);
  records.Begin();
  records.Varint(0);
  records.Varint(1);
  records.Kind(ValueKind::kDouble, false);
  records.Value(0.1);
  records.Varint(3);
  records.Kind(ValueKind::kText, true);
  records.Bits(3, [](uint64_t i) { return i != 1; });
  records.Text("");
  records.Text(std::string(300, 'x'));
  records.End();
  return out;
}

std::vector<std::string> RecordsIn(const std::string& bytes) {
  Records all(Records::Content::kBinary);
  all.AddFile("records", bytes);
  all.AddAll(ValueRecordFormat(), 0, /*is_cut=*/false);
  RecordReader reader(all);
  std::vector<std::string> records;
  for (int64_t i = 0; i < all.size(); ++i) {
    const auto record = reader.Read(i);
    records.push_back(record.ok() ? std::string(*record) : "broken");
  }
  return records;
}

TEST(ValueRecordTest, ARecordIsReadAsItWasWritten) {
  const std::vector<std::string> records = RecordsIn(OneRecord());
  ASSERT_THAT(records, SizeIs(1));
  ColumnValues values(3);
  ASSERT_OK(ReadValueRecord(records.front(), values));
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

TEST(ValueRecordTest, ABrokenRecordIsOneRecordAmongTheOthers) {
  std::string bytes = OneRecord();
  ValueRecordWriter(bytes).AddBroken();
  bytes += OneRecord();
  const std::vector<std::string> records = RecordsIn(bytes);
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_EQ(records[1], "broken");
  EXPECT_EQ(records[0], records[2]);
}

TEST(ValueRecordTest, ARecordThatIsTakenBackLeavesNothing) {
  std::string bytes = OneRecord();
  const std::string before = bytes;
  ValueRecordWriter records(bytes);
  records.Begin();
  records.Varint(1);
  records.TakeBack();
  EXPECT_EQ(bytes, before);
}

TEST(ValueRecordTest, OtherBytesAreAnErrorOrValues) {
  const std::string record = RecordsIn(OneRecord()).front();
  ColumnValues values(3);
  EXPECT_THAT(
      ReadValueRecord(record.substr(0, record.size() - 1), values),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the record is")));
  EXPECT_THAT(
      ReadValueRecord(record + "x", values),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the record is")));
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string changed = record;
    changed[random() % 20] = static_cast<char>(random());
    changed.resize(random() % (record.size() + 1));
    ReadValueRecord(changed, values).IgnoreError();
  }
}

}  // namespace
}  // namespace parasol

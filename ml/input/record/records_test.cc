#include "ml/input/record/records.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/record/record_reader.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RecordsTest, AreNumberedThroughAllFiles) {
  Records records(Records::Content::kText);
  records.AddFile("a", "one two");
  records.Add(0, 3);
  records.Add(4, 3);
  records.AddFile("empty", "");
  records.AddFile("b", "three");
  records.Add(0, 5);
  EXPECT_THAT(records.file_starts(), ElementsAre(0, 2, 2, 3));
  RecordReader reader(records);
  EXPECT_THAT(reader.Read(0), IsOkAndHolds("one"));
  EXPECT_THAT(reader.Read(1), IsOkAndHolds("two"));
  EXPECT_THAT(reader.Read(2), IsOkAndHolds("three"));
  EXPECT_THAT(reader.Corrupt(1, 0, "x").message(), "a line 1 at byte 4: x");
  EXPECT_THAT(reader.Corrupt(2, 2, "x").message(), "b line 1 at byte 2: x");
}

TEST(RecordsTest, LinesAreCountedInFilesOfAnySize) {
  std::string bytes;
  for (int i = 0; i < 100000; ++i) bytes += "12\n";
  Records records(Records::Content::kText);
  records.AddFile("lines", bytes);
  for (int i = 0; i < 100000; ++i) records.Add(3 * i, 2);
  for (const int i : {0, 1, 21845, 21846, 65535, 99999}) {
    EXPECT_THAT(RecordReader(records).Corrupt(i, 0, "x").message(),
                absl::StrCat("lines line ", i + 1, " at byte ", 3 * i, ": x"));
  }
}

TEST(RecordsTest, BrokenOnesSayWhy) {
  Records records(Records::Content::kBinary);
  records.AddFile("a", "0123456789");
  records.Add(0, 5);
  EXPECT_OK(records.CheckAllWhole());
  records.AddBroken(5, 5, "half of it");
  RecordReader reader(records);
  EXPECT_THAT(reader.Read(0), IsOkAndHolds("01234"));
  for (const absl::Status& status :
       {reader.Read(1).status(), records.CheckAllWhole()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                 HasSubstr("a at byte 5: half of it")));
  }
}

TEST(RecordsTest, OnesOfMoreThanAGibibyteAreBroken) {
  Records records(Records::Content::kBinary);
  records.AddFile("a", "");
  records.Add(0, kMaxRecordBytes + 1);
  EXPECT_THAT(RecordReader(records).Read(0),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("a record of 1073741825 bytes")));
}

}  // namespace
}  // namespace parasol

#include "ml/input/format/csv_fields.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsNull;
using ::testing::NotNull;

TEST(CsvFieldsTest, TakesARecordApart) {
  const struct {
    std::string delimiter;
    std::string record;
    std::vector<std::string> want;
  } cases[] = {
      {",", "a,b,c", {"a", "b", "c"}},
      {",", "", {""}},
      {",", ",", {"", ""}},
      {",", " a b\t, c ,", {"a b", "c", ""}},
      {"\t", "a\t\t b", {"a", "", "b"}},
      {"::", "1::2:3::", {"1", "2:3", ""}},
      {",", "\"a,b\",c", {"a,b", "c"}},
      {",", " \"a\" , \"\"", {"a", ""}},
      {",", "\" a \"", {" a "}},
      {",", R"("say ""hi""","""")", {"say \"hi\"", "\""}},
      {",", "5\" pipe,x", {"5\" pipe", "x"}},
      {",", "\"two\nlines\",x", {"two\nlines", "x"}},
      {"::", "\"a::b\"::c", {"a::b", "c"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.record);
    CsvFields fields(c.delimiter);
    const auto* values = fields.Split(c.record, 100);
    ASSERT_THAT(values, NotNull());
    EXPECT_THAT(*values, ElementsAreArray(c.want));
  }
}

TEST(CsvFieldsTest, TextBehindAQuoteAndQuotesWithoutEndAreRefused) {
  CsvFields fields(",");
  for (const std::string record : {"\"a\"b,c", "\"a", "\"a\"\"", "x,\""}) {
    EXPECT_THAT(fields.Split(record, 100), IsNull()) << record;
  }
}

// Delimiters at all places of the 16 bytes that are looked at together.
TEST(CsvFieldsTest, DelimitersAreFoundAtAnyOffset) {
  std::mt19937 draw(1);
  const absl::string_view letters = "ab \t";
  for (const char delimiter : {',', '\t'}) {
    CsvFields fields(absl::string_view(&delimiter, 1));
    for (int time = 0; time < 2000; ++time) {
      std::vector<std::string> want;
      std::string record;
      const size_t count = 1 + draw() % 12;
      for (size_t i = 0; i < count; ++i) {
        std::string value;
        for (size_t length = draw() % 9; length > 0; --length) {
          const char c = letters[draw() % letters.size()];
          if (c != delimiter) value += c;
        }
        absl::StrAppend(&record, i > 0 ? std::string(1, delimiter) : "", value);
        const std::string blanks = delimiter == ',' ? " \t" : " ";
        const size_t first = value.find_first_not_of(blanks);
        want.push_back(
            first == std::string::npos
                ? ""
                : value.substr(first,
                               value.find_last_not_of(blanks) + 1 - first));
      }
      const auto* const values = fields.Split(record, 100);
      ASSERT_NE(values, nullptr);
      ASSERT_THAT(*values, ElementsAreArray(want)) << record;
      const size_t most = draw() % 12;
      EXPECT_EQ(fields.Split(record, most)->size(),
                std::min(want.size(), most + 1))
          << record;
    }
  }
}

TEST(CsvFieldsTest, StopsBehindTheLargestNumberOfValues) {
  CsvFields fields(",");
  EXPECT_EQ(fields.Split("1,2,3,4,5,6", 3)->size(), 4);
}

TEST(CsvFieldsTest, ARecordEndsAtALineEndOutsideQuotes) {
  const struct {
    std::string file;
    size_t want;
  } cases[] = {
      {"a,b\nc", 3},          {"a,b", 3},
      {"\"a\nb\",c\nd", 7},   {"x,\"a\n\"\"\nb\"\r\nd", 11},
      {"5\" pipe\n\"x\"", 7},
  };
  for (const auto& c : cases) {
    const CsvRecordEnd end = EndOfCsvRecord(c.file, ",");
    EXPECT_EQ(end.kind, CsvRecordEnd::Kind::kWhole) << c.file;
    EXPECT_EQ(end.size, c.want) << c.file;
  }
}

// Whatever is read of a file first, its records are the same.
TEST(CsvFieldsTest, TheEndOfARecordIsNotGuessedFromItsBeginning) {
  const std::string files[] = {
      "a,b\nc",
      "\"a\nb\",c\nd",
      "x,\"a\n\"\"\nb\"\r\nd",
      "\"a\"b\nc\n",
      "\"a\"::b\nc",
      "5\" pipe\n\"x\"\n",
      "\"" + std::string(kMaxCsvQuotedBytes + 9, '\n') + "\"\nx"};
  for (const std::string& file : files) {
    for (const char* delimiter : {",", "::"}) {
      const CsvRecordEnd want = EndOfCsvRecord(file, delimiter);
      for (size_t size = 0; size < file.size();
           size += size < 64 || size + 64 > file.size() ? 1 : 4001) {
        const CsvRecordEnd end = EndOfCsvRecord(
            absl::string_view(file).substr(0, size), delimiter, true);
        if (end.kind == CsvRecordEnd::Kind::kCutOff) continue;
        EXPECT_EQ(end.kind, want.kind) << size << " bytes of " << file.size();
        EXPECT_EQ(end.size, want.size) << size << " bytes of " << file.size();
      }
    }
  }
}

TEST(CsvFieldsTest, WrongQuotesHaveNoEnd) {
  const std::string far = "\"" + std::string(2 << 20, 'x') + "\"\n";
  for (const std::string& file :
       {std::string("\"a\nb"), std::string("\"a\"b\nc"), far}) {
    EXPECT_EQ(EndOfCsvRecord(file, ",").kind, CsvRecordEnd::Kind::kBroken);
  }
}

TEST(DelimiterHintTest, NamesTheDelimiterBehindWhichTheColumnIs) {
  EXPECT_EQ(DelimiterHint("b", {"a;b;c"}), "; is csv.delimiter: \";\" meant?");
  EXPECT_EQ(DelimiterHint("b", {"a\t\"b\" \tc"}),
            "; is csv.delimiter: \"\\t\" meant?");
  // A comma in a name was taken for one between names.
  EXPECT_EQ(DelimiterHint("city", {"name", "first; city "}),
            "; is csv.delimiter: \";\" meant?");
}

TEST(DelimiterHintTest, IsEmptyForOtherSlips) {
  EXPECT_EQ(DelimiterHint("agee", {"user", "age"}), "");
  EXPECT_EQ(DelimiterHint("a;b", {"a;b", "c"}), "");
}

TEST(DelimiterHintTest, OneColumnIsDoubtful) {
  EXPECT_EQ(DelimiterHint("y", {"a:b"}), "; is csv.delimiter right?");
}

}  // namespace
}  // namespace parasol

#include "cluster/progress/recorded_values.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

RecordedTotals Of(const std::vector<std::pair<std::string, double>>& values) {
  RecordedTotals totals;
  AddRecorded(values, totals);
  return totals;
}

TEST(RecordedValuesTest, SomeNamesAreTaken) {
  EXPECT_OK(CheckRecordedName("reward"));
  for (const char* name : {"", "seconds", "learning_rate"}) {
    EXPECT_THAT(CheckRecordedName(name),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(CheckRecordedName(std::string(101, 'a')),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 to 100 characters")));
}

TEST(RecordedValuesTest, NamesAreTextOfOneLine) {
  EXPECT_OK(CheckRecordedName("größe, 報酬"));
  for (const char* name : {"re\xffward", "two\nlines", "\x1b[2J"}) {
    const absl::Status refused = CheckRecordedName(name);
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("all printable (UTF-8)")));
    EXPECT_EQ(OneLine(refused.message()), refused.message());
  }
}

TEST(RecordedValuesTest, MeansAreOfWhatWasAddedSince) {
  const RecordedTotals before = Of({{"reward", 100}, {"size", 4}});
  RecordedTotals now = before;
  AddRecorded({{"reward", 1}, {"reward", 2}, {"new", 7}}, now);
  EXPECT_THAT(MeansOf(RecordedSince(before, now)),
              ElementsAre(Pair("new", 7), Pair("reward", 1.5)));
  EXPECT_THAT(RecordedSince(now, before), IsEmpty());
}

TEST(RecordedValuesTest, AValueThatIsNotFiniteSpoilsItsOwnMeanAlone) {
  const RecordedTotals first =
      Of({{"reward", 1}, {"reward", std::numeric_limits<double>::infinity()}});
  ASSERT_THAT(MeansOf(first), SizeIs(1));
  EXPECT_TRUE(std::isnan(MeansOf(first)[0].second));
  RecordedTotals later = first;
  AddRecorded({{"reward", 3}}, later);
  EXPECT_THAT(MeansOf(RecordedSince(first, later)),
              ElementsAre(Pair("reward", 3)));
}

TEST(RecordedValuesTest, MessagesHaveTheTotals) {
  const RecordedTotals totals =
      Of({{"reward", 1}, {"reward", 2}, {"size", NAN}});
  RecordedMessages messages;
  ToMessages(totals, messages);
  const RecordedTotals read = RecordedOf(messages);
  ASSERT_THAT(read, SizeIs(2));
  EXPECT_EQ(read.at("reward").sum, 3);
  EXPECT_EQ(read.at("reward").count, 2);
  EXPECT_EQ(read.at("size").not_finite, 1);
}

TEST(RecordedValuesTest, WhatAMessageCantHaveIsLeftOut) {
  RecordedMessages messages;
  const auto add = [&](const std::string& name, double sum, int64_t count,
                       int64_t not_finite) {
    wire::RecordedValues& one = *messages.Add();
    one.set_name(name);
    one.set_sum(sum);
    one.set_count(count);
    one.set_not_finite(not_finite);
  };
  add("loss", 1, 1, 0);
  add("", 1, 1, 0);
  add("nan", NAN, 1, 0);
  add("none", 1, 0, 0);
  add("negative", 1, 1, -1);
  add("more", 1, 1, 2);
  EXPECT_THAT(RecordedOf(messages), IsEmpty());
  for (int i = 0; i < 200; ++i) add(absl::StrCat("n", i), 1, 1, 0);
  RecordedTotals totals = RecordedOf(messages);
  EXPECT_THAT(totals, SizeIs(kMostRecordedNames));
  AddRecorded(Of({{"another", 1}}), totals);
  EXPECT_THAT(totals, SizeIs(kMostRecordedNames));
}

}  // namespace
}  // namespace parasol

#include "ml/input/feature/id_feature.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/testing/read_all.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Columns with these texts, "" for a missing value.
ColumnValues RowOf(const std::vector<absl::string_view>& texts) {
  ColumnValues row;
  for (const absl::string_view text : texts) {
    row.emplace_back();
    if (!text.empty()) row.back().push_back(FieldValue::Text(text));
  }
  return row;
}

// The ids of an input whose columns' parts are the row's, one after another.
absl::StatusOr<std::vector<uint64_t>> IdsOf(const std::string& input,
                                            const ColumnValues& row) {
  const auto spec = FromText<job::IdInput>(input);
  std::vector<std::vector<size_t>> slots;
  size_t slot = 0;
  for (const job::IdColumn& column : spec.column()) {
    slots.emplace_back();
    for (int i = 0; i < column.name_size(); ++i) slots.back().push_back(slot++);
  }
  IdFeature feature = {.offsets = {0}};
  RETURN_IF_ERROR(IdFeatureReader(spec, slots).Append(row, feature));
  EXPECT_EQ(feature.offsets.back(), feature.ids.size());
  return feature.ids;
}

TEST(IdFeatureTest, IdentityIsTheNumber) {
  const std::string input = "column { name: 'a' identity { num_ids: 10 } }";
  EXPECT_THAT(IdsOf(input, RowOf({"0"})), IsOkAndHolds(ElementsAre(0)));
  EXPECT_THAT(IdsOf(input, RowOf({"9"})), IsOkAndHolds(ElementsAre(9)));
  EXPECT_THAT(IdsOf(input, {{FieldValue::Integer(3), FieldValue::Integer(4)}}),
              IsOkAndHolds(ElementsAre(3, 4)));
  for (const char* text : {"10", "-1", "1.5", "x"}) {
    EXPECT_THAT(IdsOf(input, RowOf({text})),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("column a")));
  }
}

TEST(IdFeatureTest, NumbersWithoutALimitHave64Bits) {
  const std::string input = "column { name: 'a' missing: NO_ID }";
  EXPECT_THAT(IdsOf(input, {{FieldValue::Integer(-1), FieldValue::Integer(5)}}),
              IsOkAndHolds(ElementsAre(UINT64_MAX, 5)));
  EXPECT_THAT(IdsOf(input, RowOf({"18446744073709551615"})),
              IsOkAndHolds(ElementsAre(UINT64_MAX)));
  // One rule for texts and numbers.
  EXPECT_THAT(IdsOf(input, RowOf({"-1"})),
              IsOkAndHolds(ElementsAre(UINT64_MAX)));
  EXPECT_THAT(IdsOf(input, RowOf({"9223372036854775808"})),
              IsOkAndHolds(ElementsAre(uint64_t{1} << 63)));
  for (const char* text : {"18446744073709551616", "-9223372036854775809"}) {
    EXPECT_THAT(IdsOf(input, RowOf({text})),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("is beyond the 64 bits of an id")));
  }
  EXPECT_THAT(
      IdsOf("column { name: 'a' identity { num_ids: 10 } }", RowOf({"-1"})),
      StatusIs(absl::StatusCode::kDataLoss,
               HasSubstr("\"-1\" is not from 0 to 9")));
}

TEST(IdFeatureTest, BoundariesCountThoseAtOrBelow) {
  const std::string input =
      "column { name: 'a' boundaries { boundary: [-1, 0.5, 3] } }";
  const struct {
    const char* text;
    uint64_t want;
  } cases[] = {{"-2", 0}, {"-1", 1}, {"0", 1}, {"0.5", 2}, {"3", 3}, {"9", 3}};
  for (const auto& c : cases) {
    EXPECT_THAT(IdsOf(input, RowOf({c.text})),
                IsOkAndHolds(ElementsAre(c.want)));
  }
  EXPECT_THAT(IdsOf(input, RowOf({"many"})),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(IdFeatureTest, VocabularyIsThePositionAndThenOutOfVocabulary) {
  const std::string words = "value: 'x' value: 'y'";
  const std::string one = "column { name: 'a' vocabulary { " + words + " } }";
  EXPECT_THAT(IdsOf(one, RowOf({"y"})), IsOkAndHolds(ElementsAre(1)));
  EXPECT_THAT(IdsOf(one, RowOf({"z"})), IsOkAndHolds(ElementsAre(2)));
  EXPECT_THAT(IdsOf(one, RowOf({""})), IsOkAndHolds(ElementsAre(3)));
  const std::string none = "column { name: 'a' missing: NO_ID vocabulary { " +
                           words + " out_of_vocabulary: 0 } }";
  EXPECT_THAT(IdsOf(none, RowOf({"z"})), IsOkAndHolds(IsEmpty()));
  const std::string many =
      "column { name: 'a' vocabulary { " + words + " out_of_vocabulary: 5 } }";
  ASSERT_OK_AND_ASSIGN(const auto ids, IdsOf(many, RowOf({"zebra"})));
  EXPECT_GE(ids.front(), 2);
  EXPECT_LT(ids.front(), 7);
}

TEST(IdFeatureTest, HashIsTheFingerprintOfColumnAndValue) {
  const uint64_t print = Fingerprint().AddPart("a").AddPart("x").Get();
  EXPECT_THAT(IdsOf("column { name: 'a' hash {} }", RowOf({"x"})),
              IsOkAndHolds(ElementsAre(print)));
  EXPECT_THAT(IdsOf("column { name: 'a' hash { buckets: 100 } }", RowOf({"x"})),
              IsOkAndHolds(ElementsAre(print % 100)));
  // An integer of a tf.Example and its digits in a CSV file are one value.
  EXPECT_EQ(
      *IdsOf("column { name: 'a' hash {} }", RowOf({"-12"})),
      *IdsOf("column { name: 'a' hash {} }", {{FieldValue::Integer(-12)}}));
}

TEST(IdFeatureTest, MissingValuesHaveAnIdOfTheirOwnOrNone) {
  EXPECT_THAT(IdsOf("column { name: 'a' hash { buckets: 100 } }", RowOf({""})),
              IsOkAndHolds(ElementsAre(100)));
  EXPECT_THAT(
      IdsOf("column { name: 'a' identity { num_ids: 5 } }", RowOf({""})),
      IsOkAndHolds(ElementsAre(5)));
  EXPECT_THAT(IdsOf("column { name: 'a' hash {} }", RowOf({""})),
              IsOkAndHolds(ElementsAre(
                  Fingerprint().AddPart("a").AddPart("\xff").Get())));
  EXPECT_THAT(IdsOf("column { name: 'a' missing: NO_ID hash {} }", RowOf({""})),
              IsOkAndHolds(IsEmpty()));
}

TEST(IdFeatureTest, ACrossIsOneValue) {
  const std::string input =
      "column { name: ['a', 'b'] hash { buckets: 1000 } }";
  const uint64_t want =
      Fingerprint().AddPart("a").AddPart("b").AddPart("x").AddPart("y").Get() %
      1000;
  EXPECT_THAT(IdsOf(input, RowOf({"x", "y"})), IsOkAndHolds(ElementsAre(want)));
  EXPECT_THAT(IdsOf(input, RowOf({"x", ""})), IsOkAndHolds(ElementsAre(1000)));
  EXPECT_THAT(IdsOf(input, {{FieldValue::Integer(1)},
                            {FieldValue::Integer(1), FieldValue::Integer(2)}}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a x b")));
}

TEST(IdFeatureTest, IdsOfTwoColumnsNeverMeet) {
  const std::string input =
      "column { name: 'a' identity { num_ids: 10 } }"
      "column { name: 'b' boundaries { boundary: 0 } missing: NO_ID }"
      "column { name: 'c' vocabulary { value: 'x' } }"
      "column { name: 'd' identity { num_ids: 3 } }";
  // Spaces: 10 + 1, 2, 1 + 1 + 1, 3 + 1.
  EXPECT_THAT(IdsOf(input, RowOf({"0", "-1", "x", "0"})),
              IsOkAndHolds(ElementsAre(0, 11, 13, 16)));
  EXPECT_THAT(IdsOf(input, RowOf({"", "", "", ""})),
              IsOkAndHolds(ElementsAre(10, 15, 19)));
}

std::vector<FieldValue> Numbers(int64_t count) {
  std::vector<FieldValue> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(FieldValue::Integer(i));
  return values;
}

TEST(IdFeatureTest, ASequenceKeepsItsLastOrFirstSteps) {
  const std::string column = "column { name: 'a' identity { num_ids: 100 } } ";
  EXPECT_THAT(IdsOf(column + "sequence { length: 3 }", {Numbers(5)}),
              IsOkAndHolds(ElementsAre(2, 3, 4)));
  EXPECT_THAT(
      IdsOf(column + "sequence { length: 3 keep: FIRST }", {Numbers(5)}),
      IsOkAndHolds(ElementsAre(0, 1, 2)));
  EXPECT_THAT(IdsOf(column + "sequence { length: 5 }", {Numbers(5)}),
              IsOkAndHolds(ElementsAre(0, 1, 2, 3, 4)));
  EXPECT_THAT(IdsOf(column + "sequence { length: 3 }", {Numbers(1)}),
              IsOkAndHolds(ElementsAre(0)));
}

TEST(IdFeatureTest, ExamplesBeforeACutSequenceStay) {
  const auto spec = FromText<job::IdInput>(
      "column { name: 'a' identity { num_ids: 100 } } sequence { length: 2 }");
  IdFeature feature = {.offsets = {0}};
  const IdFeatureReader reader(spec, {{0}});
  for (const int64_t count : {1, 4, 0, 2}) {
    ASSERT_OK(reader.Append({Numbers(count)}, feature));
  }
  EXPECT_THAT(feature.ids, ElementsAre(0, 2, 3, 0, 1));
  EXPECT_THAT(feature.offsets, ElementsAre(0, 1, 3, 3, 5));
}

TEST(IdFeatureTest, AnEmptySequenceHasNoStepsAndAMissingValueIsOne) {
  const std::string own =
      "column { name: 'a' identity { num_ids: 10 } } sequence { length: 4 }";
  const std::string none =
      "column { name: 'a' identity { num_ids: 10 } missing: NO_ID } "
      "sequence { length: 4 }";
  const ColumnValues gap = {
      {FieldValue::Integer(3), FieldValue::Missing(), FieldValue::Integer(5)}};
  for (const std::string& input : {own, none}) {
    EXPECT_THAT(IdsOf(input, {{}}), IsOkAndHolds(IsEmpty()));
  }
  EXPECT_THAT(IdsOf(own, gap), IsOkAndHolds(ElementsAre(3, 10, 5)));
  EXPECT_THAT(IdsOf(none, gap), IsOkAndHolds(ElementsAre(3, 5)));
}

TEST(IdFeatureTest, AStepThatIsNoIdIsNamedThoughItWouldBeCut) {
  EXPECT_THAT(
      IdsOf("column { name: 'a' identity { num_ids: 3 } } sequence { "
            "length: 1 keep: FIRST }",
            {Numbers(5)}),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("\"3\" is not below 3")));
}

}  // namespace
}  // namespace parasol

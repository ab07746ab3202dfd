#include "ml/input/feature/dense_feature.h"

#include <cmath>
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
using ::testing::FloatEq;
using ::testing::HasSubstr;

// Returns the values of an input whose column i is row[i].
absl::StatusOr<std::vector<float>> ValuesOf(const std::string& input,
                                            const ColumnValues& row) {
  const auto spec = FromText<job::DenseInput>(input);
  std::vector<size_t> slots(spec.column_size());
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = i;
  std::vector<float> values;
  RETURN_IF_ERROR(DenseFeatureReader(spec, slots).Append(row, values));
  return values;
}

ColumnValues Texts(const std::vector<absl::string_view>& texts) {
  ColumnValues row;
  for (const absl::string_view text : texts)
    row.push_back({FieldValue::Text(text)});
  return row;
}

TEST(DenseFeatureTest, LogarithmComesBeforeMeanAndStddev) {
  EXPECT_THAT(
      ValuesOf("shape: 2 column { name: 'a' log1p: true mean: 1 stddev: 2 } "
               "column { name: 'b' mean: 10 }",
               Texts({"3", "4"})),
      IsOkAndHolds(ElementsAre(FloatEq((std::log(4.0f) - 1) / 2), -6)));
}

TEST(DenseFeatureTest, LogarithmOfWhatIsNotAboveZeroIsZero) {
  EXPECT_THAT(ValuesOf("shape: 2 column { name: 'a' log1p: true } column { "
                       "name: 'b' log1p: true }",
                       Texts({"-5", "0"})),
              IsOkAndHolds(ElementsAre(0, 0)));
}

TEST(DenseFeatureTest, ADefaultIsTransformedLikeAValue) {
  EXPECT_THAT(
      ValuesOf("shape: 1 column { name: 'a' default_value: 5 mean: 1 }", {{}}),
      IsOkAndHolds(ElementsAre(4)));
}

TEST(DenseFeatureTest, AColumnHasItsShareOfTheElements) {
  const std::string input =
      "shape: [2, 2] column { name: 'a' } column { name: "
      "'b' default_value: 7 }";
  EXPECT_THAT(
      ValuesOf(input, {{FieldValue::Real(1), FieldValue::Integer(2)}, {}}),
      IsOkAndHolds(ElementsAre(1, 2, 7, 7)));
  EXPECT_THAT(ValuesOf(input, {{FieldValue::Real(1)}, {}}),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("column a: 1 values, not 2")));
}

TEST(DenseFeatureTest, WhatIsNoFiniteNumberIsCorrupt) {
  const std::string input = "shape: 1 column { name: 'a' }";
  for (const absl::string_view text : {"x", "nan", "1e39", "1 2"}) {
    EXPECT_THAT(ValuesOf(input, Texts({text})),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("column a")));
  }
  EXPECT_THAT(ValuesOf(input, {{FieldValue::Real(NAN)}}),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ValuesOf(input, {{}}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is missing")));
}

}  // namespace
}  // namespace parasol

#include "cluster/job/validate_model_inputs.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/dataset_defaults.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::StartsWith;

absl::Status Validated(const std::string& text) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  FillModelInputDefaults(model);
  return ValidateModelInputs(model).first();
}

TEST(ValidateModelInputsTest, InputsOfEveryKindAreFine) {
  EXPECT_OK(Validated("input_shape: [28, 28]"));
  EXPECT_OK(Validated(
      "input { name: 'a' dense { shape: 4 } } input { name: 'b' ids {} } "
      "input { name: 'c' dense { column { name: 'x' log1p: true } } } "
      "input { name: 'd' ids { column { name: 'x' hash {} } column { name: 'x' "
      "name: 'y' hash { buckets: 10 } } column { name: 'x' boundaries { "
      "boundary: [1, 2] } } column { name: 'x' vocabulary { value: 'a' "
      "out_of_vocabulary: 0 } } column { name: 'x' identity { num_ids: 1 } } } "
      "}"));
}

TEST(ValidateModelInputsTest, FaultsAreNamedByTheirField) {
  const auto dense = [](const std::string& text) {
    return absl::StrCat("input { name: 'a' dense { ", text, " } }");
  };
  const auto column = [](const std::string& text) {
    return absl::StrCat("input { name: 'a' ids { column { ", text, " } } }");
  };
  const std::string in = "model.input[0].";
  const std::string in_column = in + "ids.column[0]";
  const struct {
    std::string text;
    std::string want;
  } cases[] = {
      {"input_shape: 1 " + dense("shape: 1"), "model.input_shape: is set, and"},
      {"input { dense { shape: 1 } }", in + "name: is not set"},
      {"input { name: 'a' }", "model.input[0]: neither dense nor ids"},
      {dense("shape: 1") + dense("shape: 1"),
       "model.input[1].name: a appears twice"},
      {dense(""), in + "dense.shape: is not set"},
      {dense("shape: 0"), in + "dense.shape[0]: 0 is not in"},
      {dense("shape: [65536, 65536]"), in + "dense.shape: 4294967296 is not"},
      {dense("shape: 3 column { name: 'x' } column { name: 'y' }"),
       in + "dense.shape: 3 elements are not made of 2 columns"},
      {dense("column { mean: 1 }"), in + "dense.column[0].name: is not set"},
      {dense("column { name: 'x' stddev: 0 }"),
       in + "dense.column[0].stddev: 0 is not greater than 0"},
      {dense("column { name: 'x' default_value: nan }"),
       in + "dense.column[0].default_value: nan is not finite"},
      {column("hash {}"), in_column + ".name: is not set"},
      {column("name: 'x'"), in_column + ": no kind is chosen"},
      {column("name: ['x', 'y'] identity { num_ids: 1 }"),
       in_column + ": only `hash` makes ids of several columns"},
      {column("name: 'x' hash { buckets: -1 }"),
       in_column + ".hash.buckets: -1 is not in"},
      {column("name: 'x' identity {}"),
       in_column + ".identity.num_ids: is not set"},
      {column("name: 'x' vocabulary {}"),
       in_column + ".vocabulary.value: is not set"},
      {column("name: 'x' vocabulary { value: ['a', 'a'] }"),
       in_column + ".vocabulary.value: \"a\" appears twice"},
      {column("name: 'x' boundaries { boundary: [1, 1] }"),
       in_column + ".boundaries.boundary: 1 comes after 1"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const absl::Status status = Validated(c.text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), StartsWith(c.want));
  }
}

TEST(ValidateModelInputsTest, ASequenceIsMadeOfOneColumn) {
  const auto ids = [](const std::string& text) {
    return absl::StrCat("input { name: 'a' ids { ", text, " } }");
  };
  const std::string column = "column { name: 'x' hash {} } ";
  EXPECT_OK(Validated(ids("sequence { length: 1 }")));
  EXPECT_OK(Validated(ids(column + "sequence { length: 20 separator: '::' "
                                   "keep: FIRST }")));
  const struct {
    std::string text;
    std::string fault;
  } cases[] = {
      {"sequence {}", "length: is not set"},
      {"sequence { length: 0 }", "length"},
      {"sequence { length: 65537 }", "length"},
      {"sequence { length: 1 separator: '' }", "separator: \"\" is not 1 to"},
      {"sequence { length: 1 separator: '\"' }", "separator"},
      {"sequence { length: 1 separator: '12345678901234567' }", "separator"},
  };
  for (const auto& [text, fault] : cases) {
    EXPECT_THAT(Validated(ids(text)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         StartsWith("model.input[0].ids.sequence." + fault)))
        << text;
  }
  const std::string sequence = "sequence { length: 3 }";
  EXPECT_THAT(
      Validated(ids(column + column + sequence)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               StartsWith("model.input[0].ids.column: a sequence is made of")));
  EXPECT_THAT(
      Validated(ids("column { name: ['x', 'y'] hash {} } " + sequence)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               StartsWith("model.input[0].ids.column[0].name: a sequence is")));
}

}  // namespace
}  // namespace parasol

#include "serving/json_request.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/given_examples.h"
#include "ml/input/testing/read_all.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPairs[] = R"(
  input { name: "pair" ids { column { name: "user" identity { num_ids: 100 } }
                             column { name: "item" vocabulary { value: ["a", "b"] } } } }
  input { name: "age" dense { column { name: "age" default_value: 7 } } }
)";
constexpr char kMatrix[] = R"(input { name: "x" dense { shape: [2, 2] } })";
constexpr char kCsv[] = R"(csv { label { column: "y" } missing: "NA" })";

class JsonRequestTest : public ::testing::Test {
 protected:
  absl::StatusOr<Batch> Read(const std::string& model,
                             const std::string& body) {
    ASSIGN_OR_RETURN(const ModelInputs inputs, InputsFromText(model));
    ASSIGN_OR_RETURN(
        const GivenExamples form,
        GivenExamples::Create(FromText<job::Dataset>(kCsv), inputs));
    RequestColumns columns(form, limits_);
    ASSIGN_OR_RETURN(request_, ParseJsonRequest(body, columns));
    Batch batch;
    RETURN_IF_ERROR(columns.ToBatch(batch));
    return batch;
  }

  RequestLimits limits_ = {.max_examples = 4, .max_values = 100};
  JsonRequest request_;
};

TEST_F(JsonRequestTest, RowsAndColumnsGiveTheSameExamples) {
  ASSERT_OK_AND_ASSIGN(const Batch rows,
                       Read(kPairs, R"({"signature_name": "s", "instances": [
          {"user": 3, "item": "b", "age": 2.5, "y": 1},
          {"item": "a", "user": "4", "age": null}]})"));
  EXPECT_TRUE(request_.is_rows);
  EXPECT_EQ(request_.signature_name, "s");
  EXPECT_EQ(rows.size, 2);
  // 101 ids of users, the missing user's included, come before the items' ids.
  EXPECT_THAT(rows.ids[0].ids, ElementsAre(3, 102, 4, 101));
  EXPECT_THAT(rows.dense[0].values, ElementsAre(2.5, 7));
  ASSERT_OK_AND_ASSIGN(
      const Batch columns,
      Read(kPairs, R"({"inputs": {"user": [3, 4], "item": ["b", "a"],
                                  "age": [[2.5], "NA"]}})"));
  EXPECT_FALSE(request_.is_rows);
  EXPECT_EQ(columns.ids[0].ids, rows.ids[0].ids);
  EXPECT_EQ(columns.dense[0].values, rows.dense[0].values);
}

TEST_F(JsonRequestTest, BlanksAroundATextDoNotCount) {
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      Read(kPairs, R"({"instances": [{"user": " 3", "item": "\tb ",
                                      "age": " NA "}]})"));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(3, 102));
  EXPECT_THAT(batch.dense[0].values, ElementsAre(7));
}

TEST_F(JsonRequestTest, TheOnlyInputNeedsNoName) {
  for (const char* body :
       {R"({"instances": [[[1, 2], [3, 4]]]})",
        R"({"instances": [[1, 2, 3, 4]]})", R"({"inputs": [[[1, 2], [3, 4]]]})",
        R"({"instances": [{"x": [[1, 2], [3, 4]]}]})"}) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, Read(kMatrix, body));
    EXPECT_THAT(batch.dense[0].values, ElementsAre(1, 2, 3, 4)) << body;
  }
}

TEST_F(JsonRequestTest, TextsMayBeBase64) {
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      Read(R"(input { name: "w" ids { column { name: "w"
               vocabulary { value: ["a", "b"] } } } })",
           R"({"instances": [{"b64": "Yg=="}, {"w": {"b64": "YQ=="}}]})"));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(1, 0));
}

TEST_F(JsonRequestTest, FaultsNameTheirPlace) {
  const std::string deep(100000, '[');
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {kMatrix, "", "not JSON at byte"},
      {kMatrix, R"({"instances": [[1, 2, 3, 4], )", "not JSON at byte"},
      {kMatrix, R"([1])", "the body is a list, not an object"},
      {kMatrix, R"({})", "neither \"instances\" nor \"inputs\""},
      {kMatrix, R"({"rows": []})", "\"rows\""},
      {kMatrix, R"({"instances": 3})", "\"instances\" is a number"},
      {kMatrix, R"({"instances": [1]})", "input x of example 0: has the shape"},
      {kMatrix, R"({"instances": [[1, 2, 3, 4], [[1, 2], [3]]]})",
       "input x of example 1: its lists have different lengths"},
      {kMatrix, R"({"instances": [[1, 2, 3, [4]]]})", "different lengths"},
      {kMatrix, R"({"instances": [[1, 2, 3, "b"]]})",
       "example 0: column x: \"b\" is not a finite float32"},
      {kMatrix, R"({"instances": [[1, 2, 3, 1e39]]})",
       "column x: \"1e39\" is not a finite float32"},
      {kMatrix, R"({"instances": [[1, 2, 3, 1e999]]})", "beyond float64"},
      {kMatrix, R"({"instances": [[1, 2, 3, true]]})", "input x is true"},
      {kMatrix, R"({"instances": [[1, 2, 3, null]]})", "input x is null"},
      {kMatrix, R"({"instances": [[1, 2, 3, {"a": 1}]]})", "the key \"a\""},
      {kMatrix, R"({"instances": [], "inputs": []})", "twice"},
      {kMatrix, absl::StrCat(R"({"instances": [)", deep), "input x"},
      {kMatrix, absl::StrCat(R"({"a": )", deep), "\"a\""},
      {kMatrix,
       R"({"instances": [[1,1,1,1],[1,1,1,1],[1,1,1,1],[1,1,1,1],)"
       R"([1,1,1,1]]})",
       "more than 4 examples"},
      {kPairs, R"({"instances": [7]})", "a value without a name"},
      {kPairs, R"({"instances": [{"usr": 7}]})",
       "no input \"usr\"; it has user"},
      {kPairs, R"({"instances": [{"user": 7, "user": 8}]})", "twice"},
      {kPairs, R"({"instances": [{"user": 100}]})", "is not below 100"},
      {kPairs, R"({"instances": [{"user": -1}]})", "is not from 0 to 99"},
      {kPairs, R"({"instances": [{"user": [[1], [2]]}]})",
       "input user of example 0: has the shape [2, 1]"},
      {kPairs, R"({"inputs": {"user": 3}})",
       "input user is a number; give a list with a value for each example"},
      {kPairs, R"({"inputs": {"user": [3, 4], "item": ["a"]}})",
       "input item has 1 examples, input user has 2"},
      {kPairs, R"({"inputs": {"user": [3, 4], "age": []}})",
       "input age has 0 examples, input user has 2"},
      {kPairs, R"({"inputs": {"user": [3], "user": [4]}})",
       "input user is there twice"},
  };
  for (const auto& [model, body, words] : cases) {
    EXPECT_THAT(Read(model, body),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)))
        << body.substr(0, 100);
  }
}

TEST_F(JsonRequestTest, NoValueMayBeBeyondTheLimit) {
  limits_.max_values = 6;
  EXPECT_THAT(Read(kMatrix, R"({"instances": [[1, 2, 3, 4], [1, 2, 3, 4]]})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("more than 6 values")));
}

}  // namespace
}  // namespace parasol

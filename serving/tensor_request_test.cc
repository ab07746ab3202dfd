#include "serving/tensor_request.h"

#include <string>
#include <tuple>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/given_examples.h"
#include "ml/input/testing/read_all.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kModel[] = R"(
  input { name: "user" ids { column { name: "user" identity { num_ids: 9 } } } }
  input { name: "x" dense { shape: [2] } }
)";

absl::StatusOr<Batch> Read(const std::string& request,
                           const std::string& dataset) {
  ASSIGN_OR_RETURN(const ModelInputs inputs, InputsFromText(kModel));
  ASSIGN_OR_RETURN(
      const GivenExamples form,
      GivenExamples::Create(FromText<job::Dataset>(dataset), inputs));
  const RequestLimits limits = {
      .max_examples = 4, .max_values = 100, .max_text_bytes = 1000};
  RequestColumns columns(form, limits);
  // Texts are borrowed from it until ToBatch() has returned.
  const auto tensors = FromText<tensorflow::serving::PredictRequest>(request);
  RETURN_IF_ERROR(ReadTensors(tensors, limits, columns));
  Batch batch;
  RETURN_IF_ERROR(columns.ToBatch(batch));
  return batch;
}

constexpr char kUsers[] = R"(inputs { key: "user" value {
    dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: [3, 8] } } )";

class TensorRequestTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    // Maps of messages are larger there than in Debian's Protobuf, which parses
    // the requests of this test.
    GTEST_SKIP() << "not under ThreadSanitizer";
#endif
  }
};

TEST_F(TensorRequestTest, TensorsBecomeTheModelsInputs) {
  for (const char* dataset :
       {R"(csv { label { column: "y" } })", R"(tfrecord { label: "y" })"}) {
    for (const char* x :
         {"dtype: DT_FLOAT float_val: [1, 2.5, 3, 4]",
          "dtype: DT_DOUBLE double_val: [1, 2.5, 3, 4]",
          // 1, 2.5, 3 and 4 as little-endian float32.
          R"(dtype: DT_FLOAT tensor_content: "\000\000\200?\000\000 @)"
          R"(\000\000@@\000\000\200@")",
          R"(dtype: DT_STRING string_val: ["1", "2.5", "3", "4"])"}) {
      ASSERT_OK_AND_ASSIGN(
          const Batch batch,
          Read(absl::StrCat(kUsers,
                            "inputs { key: 'x' value { tensor_shape { "
                            "dim { size: 2 } dim { size: 2 } } ",
                            x, "} }"),
               dataset));
      EXPECT_THAT(batch.ids[0].ids, ElementsAre(3, 8));
      EXPECT_THAT(batch.dense[0].values, ElementsAre(1, 2.5, 3, 4)) << x;
    }
  }
}

TEST_F(TensorRequestTest, TheLastElementStandsForAllThatFollow) {
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      Read(absl::StrCat(kUsers, R"(inputs { key: "x" value { dtype: DT_FLOAT
             tensor_shape { dim { size: 2 } dim { size: 2 } }
             float_val: [1, 2] } })"),
           R"(csv { label { column: "y" } })"));
  EXPECT_THAT(batch.dense[0].values, ElementsAre(1, 2, 2, 2));
}

TEST_F(TensorRequestTest, FaultsNameTheInput) {
  const std::vector<std::tuple<std::string, std::string>> cases = {
      {"dtype: DT_FLOAT", "input x has no shape"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: -1 } }", "an axis of -1"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 2 } "
       "dim { size: 4611686018427387904 } } float_val: 1",
       "an axis of 4611686018427387904"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 0 } "
       "dim { size: 4611686018427387904 } }",
       "has 0 examples"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 5 } } float_val: 1",
       "has 5 examples, of at most 4"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 2 } }",
       "has 0 elements, its shape has 4"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 1 } dim { size: 1 } } "
       "float_val: [1, 2]",
       "has 2 elements, its shape has 1"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 1 } dim { size: 1 } } "
       "tensor_content: 'abc'",
       "its shape has 1"},
      {"dtype: DT_BOOL tensor_shape { dim { size: 1 } } bool_val: true",
       "has the type 10"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 3 } } "
       "float_val: 1",
       "input x of example 0: has the shape [3], not [2]"},
  };
  for (const auto& [tensor, words] : cases) {
    EXPECT_THAT(
        Read(absl::StrCat(kUsers, "inputs { key: 'x' value { ", tensor, "} }"),
             R"(csv { label { column: "y" } })"),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)))
        << tensor;
  }
  EXPECT_THAT(Read("inputs { key: 'z' value { dtype: DT_FLOAT } }",
                   R"(csv { label { column: "y" } })"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no input \"z\"")));
}

TEST_F(TensorRequestTest, ATextThatStandsForManyCountsAsOften) {
  const std::string tensor = absl::StrCat(
      R"(inputs { key: "user" value { dtype: DT_STRING tensor_shape {
           dim { size: 1 } dim { size: 100 } } string_val: ")",
      std::string(11, '7'), R"(" } })");
  EXPECT_THAT(
      Read(tensor, R"(csv { label { column: "y" } })"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("the request has more than 1000 bytes of texts")));
}

TEST_F(TensorRequestTest, TheShapeIsComparedBeforeTheElements) {
  // Its first element is at fault, too.
  EXPECT_THAT(Read(absl::StrCat(R"(inputs { key: "x" value { dtype: DT_STRING
             tensor_shape { dim { size: 1 } dim { size: 100 } }
             string_val: ")",
                                std::string(2000, '7'), R"(" } })"),
                   R"(csv { label { column: "y" } })"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has the shape [100], not [2]")));
}

TEST_F(TensorRequestTest, AnUnsignedNumberBeyondInt64IsNotNegative) {
  const std::string tensor = R"(inputs { key: "x" value { dtype: DT_UINT64
      tensor_shape { dim { size: 2 } dim { size: 2 } }
      uint64_val: [1, 2, 9223372036854775808, 3] } })";
  EXPECT_THAT(Read(absl::StrCat(kUsers, tensor), R"(tfrecord { label: "y" })"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input x of example 1: 9223372036854775808 "
                                 "is beyond int64")));
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      Read(absl::StrCat(kUsers, tensor), R"(csv { label { column: "y" } })"));
  EXPECT_THAT(batch.dense[0].values,
              ElementsAre(1, 2, 9223372036854775808.f, 3));
}

TEST_F(TensorRequestTest, OutputsAreAFloatTensor) {
  const tensorflow::TensorProto tensor = TensorOf({1, 2, 3, 4, 5, 6}, 3);
  EXPECT_EQ(tensor.dtype(), 1);
  ASSERT_EQ(tensor.tensor_shape().dim_size(), 2);
  EXPECT_EQ(tensor.tensor_shape().dim(0).size(), 2);
  EXPECT_EQ(tensor.tensor_shape().dim(1).size(), 3);
  EXPECT_THAT(tensor.float_val(), ElementsAre(1, 2, 3, 4, 5, 6));
}

}  // namespace
}  // namespace parasol

#include "ml/optimizer/apply.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<const Optimizer> Make(const std::string& textproto) {
  job::Optimizer spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(textproto, &spec));
  return MakeOptimizer(spec).value();
}

// [3, 2], and one slot.
class ApplyTest : public testing::Test {
 protected:
  absl::Status Sparse(const Optimizer& optimizer, std::vector<int64_t> rows,
                      std::vector<float> gradients, size_t width = 2) {
    variable_.width = width;
    return ApplySparse(optimizer, 1, rows, gradients, variable_);
  }

  std::vector<float> values_ = {1, 2, 3, 4, 5, 6};
  std::vector<float> slot_ = {1, 1, 1, 1, 1, 1};
  float* slots_[1] = {slot_.data()};
  VariableArrays variable_ = {.values = absl::MakeSpan(values_),
                              .slots = slots_};
};

constexpr char kMomentum[] = "sgd { learning_rate: 1 momentum: .5 }";

TEST_F(ApplyTest, ADenseGradientChangesEveryElement) {
  ASSERT_OK(ApplyDense(*Make(kMomentum), 0, {0, 0, 0, 1, 1, 1}, variable_));
  EXPECT_THAT(values_, ElementsAre(1.5, 2.5, 3.5, 3.5, 4.5, 5.5));
  EXPECT_THAT(slot_, ElementsAre(.5, .5, .5, -.5, -.5, -.5));
}

TEST_F(ApplyTest, ARowThatOccursTwiceGetsTheSumOnce) {
  ASSERT_OK(Sparse(*Make(kMomentum), {2, 0, 2}, {1, 0, 4, 4, 1, 2}));
  EXPECT_THAT(values_, ElementsAre(-2.5, -1.5, 3, 4, 3.5, 4.5));
  EXPECT_THAT(slot_, ElementsAre(-3.5, -3.5, 1, 1, -1.5, -1.5));
}

TEST_F(ApplyTest, RmspropForgetsInAllRowsButMovesItsOwn) {
  ASSERT_OK(Sparse(*Make("rmsprop {}"), {1}, {1, 1}));
  EXPECT_THAT(values_, ElementsAre(1, 2, Not(3), Not(4), 5, 6));
  EXPECT_THAT(slot_, ElementsAre(.9f, .9f, 1, 1, .9f, .9f));
}

TEST_F(ApplyTest, AdamMovesAllRows) {
  std::vector<float> v(6, 1);
  float* slots[] = {slot_.data(), v.data()};
  variable_.slots = slots;
  ASSERT_OK(Sparse(*Make("adam {}"), {1}, {1, 1}));
  EXPECT_THAT(values_,
              ElementsAre(Not(1), Not(2), Not(3), Not(4), Not(5), Not(6)));
}

TEST_F(ApplyTest, NoRowsIsAnUpdateForAdamOnly) {
  ASSERT_OK(Sparse(*Make(kMomentum), {}, {}));
  EXPECT_THAT(values_, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(slot_, Each(1));
}

TEST_F(ApplyTest, SizesThatDoNotFitAreNamed) {
  const auto sgd = Make(kMomentum);
  const auto is_fault = [](const char* words) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words));
  };
  EXPECT_THAT(ApplyDense(*sgd, 0, {1, 2}, variable_),
              is_fault("a gradient of 2 elements for 6 values"));
  EXPECT_THAT(ApplyDense(*Make("adam {}"), 0, {}, variable_),
              is_fault("the variable has 1 slots, the optimizer 2"));
  EXPECT_THAT(Sparse(*sgd, {3}, {1, 1}),
              is_fault("row 3 is not in a variable of 3"));
  EXPECT_THAT(Sparse(*sgd, {-1}, {1, 1}), is_fault("row -1 is not in"));
  EXPECT_THAT(Sparse(*sgd, {0}, {1}), is_fault("1 elements for 1 rows of 2"));
  EXPECT_THAT(Sparse(*sgd, {}, {}, 4),
              is_fault("6 values are not a whole number of rows of width 4"));
  EXPECT_THAT(Sparse(*sgd, {}, {}, 0),
              is_fault("6 values are not a whole number of rows of width 0"));
  EXPECT_THAT(values_, ElementsAre(1, 2, 3, 4, 5, 6));
}

}  // namespace
}  // namespace parasol

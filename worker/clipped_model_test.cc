#include "worker/clipped_model.h"

#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

// Two variables; variable 1's gradient is ready first.
class FakeModel : public Model {
 public:
  explicit FakeModel(bool& computing) : computing_(computing) {}

  const std::vector<VariableSpec>& variables() const override {
    return variables_;
  }
  absl::Span<float> HostValue(size_t) override { return {}; }
  absl::Status Upload(size_t) override { return absl::OkStatus(); }
  absl::StatusOr<BatchResult> Gradients(
      const Batch& batch,
      absl::FunctionRef<void(size_t, absl::Span<const float>)> ready) override {
    if (batch.size == 0) return absl::InvalidArgumentError("empty");
    computing_ = true;
    ready(1, {3, 4});
    ready(0, {12});
    computing_ = false;
    return BatchResult{.examples = 7};
  }
  absl::StatusOr<BatchResult> Evaluate(const Batch&) override {
    return BatchResult{.examples = 8};
  }

 private:
  bool& computing_;
  const std::vector<VariableSpec> variables_ = std::vector<VariableSpec>(2);
};

class ClippedModelTest : public testing::Test {
 protected:
  void Clip(const job::Optimizer& limits) {
    model_ = ClipGradients(std::make_unique<FakeModel>(computing_), limits);
  }

  void Step() {
    Batch batch;
    batch.size = 7;
    overlapped_ = 0;
    gradients_.clear();
    ASSERT_OK_AND_ASSIGN(
        const BatchResult result,
        model_->Gradients(batch, [this](size_t i, absl::Span<const float> g) {
          gradients_[i] = g;
          overlapped_ += computing_ ? 1 : 0;
        }));
    EXPECT_EQ(result.examples, 7);
  }

  bool computing_ = false;
  std::unique_ptr<Model> model_;
  std::map<size_t, absl::Span<const float>> gradients_;
  int overlapped_ = 0;  // gradients that were ready before the last one was
};

TEST_F(ClippedModelTest, WithoutALimitItIsTheModelItself) {
  auto model = std::make_unique<FakeModel>(computing_);
  const Model* const same = model.get();
  EXPECT_EQ(ClipGradients(std::move(model), job::Optimizer()).get(), same);
}

TEST_F(ClippedModelTest, LimitsOfOneVariableLeaveWithTheBackwardPass) {
  job::Optimizer limits;
  limits.set_clipvalue(4);
  limits.set_clipnorm(2.5);
  Clip(limits);
  Step();
  EXPECT_THAT(gradients_[1], ElementsAre(FloatEq(1.5), FloatEq(2)));
  EXPECT_THAT(gradients_[0], ElementsAre(FloatEq(2.5)));
  EXPECT_EQ(overlapped_, 2);
}

TEST_F(ClippedModelTest, TheNormOfAllIsKnownAfterTheBackwardPass) {
  job::Optimizer limits;
  limits.set_global_clipnorm(6.5);
  Clip(limits);
  Step();
  EXPECT_THAT(gradients_[1], ElementsAre(1.5, 2));
  EXPECT_THAT(gradients_[0], ElementsAre(6));
  EXPECT_EQ(overlapped_, 0);
}

TEST_F(ClippedModelTest, TheOrderIsValueThenNormThenNormOfAll) {
  job::Optimizer limits;
  limits.set_clipvalue(3);
  limits.set_clipnorm(3);
  limits.set_global_clipnorm(1);
  Clip(limits);
  Step();  // (3, 3) and 3; norms 3 and 3; together √18
  const float all = std::sqrt(18.f);
  EXPECT_THAT(gradients_[0], ElementsAre(FloatEq(3 / all)));
  EXPECT_THAT(gradients_[1], ElementsAre(FloatEq(3 / all / std::sqrt(2.f)),
                                         FloatEq(3 / all / std::sqrt(2.f))));
}

TEST_F(ClippedModelTest, AGradientStaysForTheNextStep) {
  job::Optimizer limits;
  limits.set_clipvalue(1);
  Clip(limits);
  Step();
  const absl::Span<const float> last = gradients_[1];
  Step();
  EXPECT_NE(gradients_[1].data(), last.data());
  EXPECT_THAT(last, ElementsAre(1, 1));
}

TEST_F(ClippedModelTest, AFailedPassIsReportedAndAnEvaluationPassesThrough) {
  job::Optimizer limits;
  limits.set_global_clipnorm(1);
  Clip(limits);
  EXPECT_THAT(
      model_->Gradients(Batch(), [](size_t, absl::Span<const float>) {}),
      StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(model_->Evaluate(Batch()).value().examples, 8);
}

}  // namespace
}  // namespace parasol

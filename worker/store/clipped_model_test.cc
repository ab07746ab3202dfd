#include "worker/store/clipped_model.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/fake_staged_batch.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

// Three variables, the last one not trained, and two tables; variable 1's
// gradient is ready first.
class FakeModel : public Model {
 public:
  FakeModel(bool& computing, size_t tables, std::vector<float> row_gradients)
      : computing_(computing),
        variables_(3),
        tables_(tables),
        row_gradients_(std::move(row_gradients)) {
    variables_[0].name = "first/kernel";
    variables_[1].name = "second/kernel";
    variables_[2].trained = false;
  }

  const std::vector<VariableSpec>& variables() const override {
    return variables_;
  }
  absl::Span<float> HostValue(size_t) override { return {}; }
  absl::Status Upload(size_t) override { return absl::OkStatus(); }
  std::unique_ptr<StagedBatch> NewStagedBatch() override {
    return std::make_unique<FakeStagedBatch>();
  }
  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    static_cast<FakeStagedBatch&>(staged).batch = &batch;
    return absl::OkStatus();
  }
  const std::vector<TableUse>& tables() const override { return tables_; }

  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t,
                                        GradientSinks sinks) override {
    const Batch& batch = *static_cast<FakeStagedBatch&>(staged).batch;
    if (batch.size == 0) return absl::InvalidArgumentError("empty");
    computing_ = true;
    sinks.variable(1, {3, 4});
    sinks.variable(2, moving_);
    sinks.variable(0, {12});
    for (size_t table = 0; table < tables_.size(); ++table) {
      sinks.rows(table, {7, 8}, row_gradients_);
    }
    computing_ = false;
    return BatchResult{.examples = 7};
  }
  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch&) override {
    return EvaluatedBatch{.result = {.examples = 8}, .outputs = {}};
  }

 private:
  bool& computing_;
  std::vector<VariableSpec> variables_;
  const std::vector<TableUse> tables_;
  const std::vector<float> row_gradients_;
  const std::vector<float> moving_ = {100, 200};
};

class ClippedModelTest : public testing::Test {
 protected:
  void Clip(const job::Optimizer& limits) {
    *job_.mutable_optimizer() = limits;
    const int tables = job_.model().sparse_table_size();
    model_ = ClipGradients(
        std::make_unique<FakeModel>(computing_, tables, row_gradients_), job_);
  }

  void Step() {
    const Batch batch = {.size = 7};
    const auto staged = model_->NewStagedBatch();
    ASSERT_OK(model_->Stage(batch, *staged));
    overlapped_ = 0;
    gradients_.clear();
    rows_.clear();
    const auto keep = [this](size_t i, absl::Span<const float> g) {
      gradients_[i] = g;
      overlapped_ += computing_ ? 1 : 0;
    };
    const auto keep_rows = [this](size_t table, absl::Span<const uint64_t> ids,
                                  absl::Span<const float> g) {
      EXPECT_EQ(gradients_.size(), 3u) << "rows come last";
      EXPECT_EQ(ids.size(), 2u);
      rows_[table] = g;
    };
    ASSERT_OK_AND_ASSIGN(
        const BatchResult result,
        model_->Gradients(*staged, /*seed=*/1,
                          {.variable = keep, .rows = keep_rows}));
    EXPECT_EQ(result.examples, 7);
  }

  bool computing_ = false;
  std::vector<float> row_gradients_ = {30, 40};  // the same for each table
  std::unique_ptr<Model> model_;
  job::Job job_;
  std::map<size_t, absl::Span<const float>> gradients_, rows_;
  int overlapped_ = 0;  // gradients that were ready before the last one was
};

TEST_F(ClippedModelTest, WithoutALimitItIsTheModelItself) {
  auto model =
      std::make_unique<FakeModel>(computing_, /*tables=*/0, row_gradients_);
  const Model* const same = model.get();
  EXPECT_EQ(ClipGradients(std::move(model), job_).get(), same);
}

TEST_F(ClippedModelTest, LimitsOfOneVariableLeaveWithTheBackwardPass) {
  job::Optimizer limits;
  limits.set_clipvalue(4);
  limits.set_clipnorm(2.5);
  Clip(limits);
  Step();
  EXPECT_THAT(gradients_[1], ElementsAre(FloatEq(1.5), FloatEq(2)));
  EXPECT_THAT(gradients_[0], ElementsAre(FloatEq(2.5)));
  EXPECT_EQ(overlapped_, 3);
}

TEST_F(ClippedModelTest, TheNormOfAllIsKnownAfterTheBackwardPass) {
  job::Optimizer limits;
  limits.set_global_clipnorm(6.5);
  Clip(limits);
  Step();
  EXPECT_THAT(gradients_[1], ElementsAre(1.5, 2));
  EXPECT_THAT(gradients_[0], ElementsAre(6));
  EXPECT_EQ(overlapped_, 1);  // what is not trained
}

TEST_F(ClippedModelTest, WhatIsNotTrainedIsLeftAsItIs) {
  job::Optimizer limits;
  limits.set_clipvalue(1);
  limits.set_clipnorm(1);
  limits.set_global_clipnorm(1);
  Clip(limits);
  Step();
  EXPECT_THAT(gradients_[2], ElementsAre(100, 200));
}

TEST_F(ClippedModelTest, TheRowsOfATableAreOneGradientAmongTheOthers) {
  job_.mutable_model()->add_sparse_table();
  job::Optimizer limits;
  limits.set_clipnorm(12);
  limits.set_global_clipnorm(8.84590301);  // half of √(5² + 12² + 12²)
  Clip(limits);
  Step();
  EXPECT_THAT(gradients_[1], ElementsAre(FloatEq(1.5), FloatEq(2)));
  EXPECT_THAT(gradients_[0], ElementsAre(FloatEq(6)));
  EXPECT_THAT(rows_[0], ElementsAre(FloatEq(3.6), FloatEq(4.8)));
}

TEST_F(ClippedModelTest, ATableWithItsOwnOptimizerHasItsOwnLimits) {
  job_.mutable_model()->add_sparse_table()->mutable_optimizer()->set_clipvalue(
      35);
  job_.mutable_model()->add_sparse_table()->mutable_optimizer();
  job::Optimizer limits;
  limits.set_global_clipnorm(6.5);
  Clip(limits);
  Step();
  EXPECT_THAT(gradients_[0], ElementsAre(6));
  EXPECT_THAT(rows_[0], ElementsAre(30, 35));
  EXPECT_THAT(rows_[1], ElementsAre(30, 40));
}

TEST_F(ClippedModelTest, VariablesOfAnotherOptimizerHaveItsLimitsAndNorm) {
  job::Layer& second = *job_.mutable_model()->add_layer();
  second.set_name("second");
  second.mutable_optimizer()->mutable_ftrl();
  second.mutable_optimizer()->set_global_clipnorm(1);
  job::Optimizer limits;
  limits.set_clipvalue(2);
  Clip(limits);
  Step();
  EXPECT_THAT(gradients_[0], ElementsAre(2));
  EXPECT_THAT(gradients_[1], ElementsAre(FloatEq(.6), FloatEq(.8)));
  EXPECT_THAT(gradients_[2], ElementsAre(100, 200));
  EXPECT_EQ(overlapped_, 1);  // what is not trained
}

// The optimizer of a layer that is equal to the job's is the job's.
TEST_F(ClippedModelTest, EqualOptimizersHaveOneNorm) {
  job::Optimizer limits;
  limits.mutable_sgd();
  limits.set_global_clipnorm(1.3);
  job::Layer& second = *job_.mutable_model()->add_layer();
  second.set_name("second");
  *second.mutable_optimizer() = limits;
  Clip(limits);
  Step();
  EXPECT_THAT(gradients_[0], ElementsAre(FloatEq(1.2)));
  EXPECT_THAT(gradients_[1], ElementsAre(FloatEq(.3), FloatEq(.4)));
}

TEST_F(ClippedModelTest, ATablesOwnLimitsAreAppliedInOrderToItsRowsTogether) {
  job::Optimizer& own =
      *job_.mutable_model()->add_sparse_table()->mutable_optimizer();
  own.set_clipnorm(25);  // the norm of (30, 40) is 50
  job::Optimizer& other =
      *job_.mutable_model()->add_sparse_table()->mutable_optimizer();
  other.set_clipvalue(30);
  other.set_global_clipnorm(std::sqrt(2.) * 15);
  Clip({});
  Step();
  EXPECT_THAT(gradients_[0], ElementsAre(12));
  EXPECT_THAT(rows_[0], ElementsAre(FloatEq(15), FloatEq(20)));
  EXPECT_THAT(rows_[1], ElementsAre(FloatEq(15), FloatEq(15)));
}

TEST_F(ClippedModelTest, ANormThatIsNotFiniteMakesATablesRowsNan) {
  job_.mutable_model()
      ->add_sparse_table()
      ->mutable_optimizer()
      ->set_global_clipnorm(1);
  row_gradients_ = {std::numeric_limits<float>::infinity(), 1};
  Clip({});
  Step();
  EXPECT_TRUE(std::isnan(rows_[0][0]));
  EXPECT_TRUE(std::isnan(rows_[0][1]));
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
  const Batch empty;
  const auto staged = model_->NewStagedBatch();
  ASSERT_OK(model_->Stage(empty, *staged));
  const auto none = [](size_t, absl::Span<const float>) {};
  const auto no_rows = [](size_t, absl::Span<const uint64_t>,
                          absl::Span<const float>) {};
  EXPECT_THAT(model_->Gradients(*staged, /*seed=*/1,
                                {.variable = none, .rows = no_rows}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(model_->Evaluate(*staged).value().result.examples, 8);
}

}  // namespace
}  // namespace parasol

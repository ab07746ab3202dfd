#include "cluster/checkpoint/evaluation_fields.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(EvaluationFieldsTest, HaveTheStepTheMetricsAndTheLoss) {
  Evaluation evaluation;
  evaluation.global_step = 1200;
  evaluation.metrics = {{"accuracy", 0.75}, {"auc", 0.5}};
  evaluation.loss = 0.125;
  evaluation.examples = 100;
  evaluation.took = absl::Milliseconds(250);
  EXPECT_EQ(EvaluationFields(evaluation).json(),
            R"(,"step":1200,"accuracy":0.75,"auc":0.5,"loss":0.125,)"
            R"("examples":100,"seconds":0.25)");
}

}  // namespace
}  // namespace parasol

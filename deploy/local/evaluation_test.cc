#include "deploy/local/evaluation.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(EvaluationTest, LastCompleteLineCounts) {
  const auto last = LastEvaluation(
      "{\"global_step\":100,\"accuracy\":0.5,\"loss\":1.5,\"examples\":9}\n"
      "{\"global_step\":200,\"accuracy\":0.75,\"loss\":0.5,\"examples\":9}\n"
      "{\"global_step\":300,\"accuracy\":0.8");
  EXPECT_EQ(last, (Evaluation{200, 0.75, 0.5}));
}

TEST(EvaluationTest, LinesThatAreNoneAreSkipped) {
  const auto last = LastEvaluation(
      "{\"global_step\":100,\"accuracy\":0.5,\"loss\":1.5}\n"
      "not json\n[]\n7\n{\"global_step\":\"x\"}\n\n");
  EXPECT_EQ(last, (Evaluation{100, 0.5, 1.5}));
}

TEST(EvaluationTest, NothingComesFromNothing) {
  EXPECT_EQ(LastEvaluation(""), std::nullopt);
  EXPECT_EQ(LastEvaluation("{\"global_step\":1,\"accuracy\":1,\"loss\":1}"),
            std::nullopt);
}

}  // namespace
}  // namespace parasol

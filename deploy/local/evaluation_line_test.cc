#include "deploy/local/evaluation_line.h"

#include <cmath>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(EvaluationLineTest, LastCompleteLineCounts) {
  const auto last = LastEvaluationLine(
      "{\"global_step\":100,\"accuracy\":0.5,\"loss\":1.5,\"examples\":9}\n"
      "{\"global_step\":200,\"accuracy\":0.75,\"loss\":0.5,\"examples\":9}\n"
      "{\"global_step\":300,\"accuracy\":0.8");
  EXPECT_EQ(last, (EvaluationLine{200, 0.75, 0.5}));
}

TEST(EvaluationLineTest, LinesThatAreNoneAreSkipped) {
  const auto last = LastEvaluationLine(
      "{\"global_step\":100,\"accuracy\":0.5,\"loss\":1.5}\n"
      "not json\n[]\n7\n{\"global_step\":\"x\"}\n\n");
  EXPECT_EQ(last, (EvaluationLine{100, 0.5, 1.5}));
}

TEST(EvaluationLineTest, LossThatIsNotFiniteIsNull) {
  const auto last = LastEvaluationLine(
      "{\"global_step\":100,\"accuracy\":0.5,\"loss\":null}\n");
  ASSERT_TRUE(last.has_value());
  EXPECT_TRUE(std::isnan(last->loss));
}

TEST(EvaluationLineTest, NothingComesFromNothing) {
  EXPECT_EQ(LastEvaluationLine(""), std::nullopt);
  EXPECT_EQ(LastEvaluationLine("{\"global_step\":1,\"accuracy\":1,\"loss\":1}"),
            std::nullopt);
}

}  // namespace
}  // namespace parasol

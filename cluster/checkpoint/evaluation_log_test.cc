#include "cluster/checkpoint/evaluation_log.h"

#include <filesystem>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

Evaluation At(int64_t step) {
  return {.global_step = step,
          .metrics = {{"accuracy", 0.9763}},
          .loss = 0.25,
          .examples = 10000,
          .took = absl::Milliseconds(410),
          .checkpoint = "/ckpt/ckpt-000000001200",
          .final = true};
}

TEST(EvaluationLogTest, ALineHasAllFieldsInTheirOrder) {
  EXPECT_EQ(ToJsonLine(At(1200)),
            R"({"global_step":1200,"accuracy":0.9763,"loss":0.25,)"
            R"("examples":10000,"seconds":0.41,)"
            R"("checkpoint":"/ckpt/ckpt-000000001200","final":true})");
}

TEST(EvaluationLogTest, ALossThatIsNotFiniteIsNull) {
  Evaluation evaluation = At(1);
  evaluation.loss = std::numeric_limits<double>::quiet_NaN();

  EXPECT_THAT(ToJsonLine(evaluation), HasSubstr(R"("loss":null)"));
}

TEST(EvaluationLogTest, AllMetricsAreThereByTheirNames) {
  Evaluation evaluation = At(1);
  evaluation.metrics = {{"auc", std::numeric_limits<double>::quiet_NaN()},
                        {"log_loss", 0.5}};

  EXPECT_THAT(
      ToJsonLine(evaluation),
      HasSubstr(R"({"global_step":1,"auc":null,"log_loss":0.5,"loss")"));
  EXPECT_THAT(Describe(evaluation),
              HasSubstr("step 1: auc nan, log_loss 0.5000, loss 0.2500, "));
}

TEST(EvaluationLogTest, APathThatIsNoUtf8IsStillALine) {
  Evaluation evaluation = At(1);
  evaluation.checkpoint = "/ckpt\xff\n";

  EXPECT_THAT(ToJsonLine(evaluation), HasSubstr(R"(\n")"));
}

TEST(EvaluationLogTest, PeopleReadTheSame) {
  EXPECT_EQ(Describe(At(1200)),
            "step 1200: accuracy 0.9763, loss 0.2500, 10000 examples in "
            "0.41 s");
}

TEST(EvaluationLogTest, LinesAreAppended) {
  const std::string directory = ::testing::TempDir() + "/evaluation_log";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  ASSERT_OK(AppendEvaluation(directory, At(1)));
  ASSERT_OK(AppendEvaluation(directory, At(2)));

  EXPECT_THAT(ReadFile(directory + "/evaluations.jsonl", 10000),
              IsOkAndHolds(absl::StrCat(ToJsonLine(At(1)), "\n",
                                        ToJsonLine(At(2)), "\n")));
}

TEST(EvaluationLogTest, ADirectoryThatIsMissingIsNamed) {
  EXPECT_THAT(AppendEvaluation("/none", At(1)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none/eval")));
}

}  // namespace
}  // namespace parasol

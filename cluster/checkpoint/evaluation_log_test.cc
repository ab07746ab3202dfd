#include "cluster/checkpoint/evaluation_log.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

TEST(EvaluationLogTest, OnlyEvaluationsOfTheRunAreReadBack) {
  const std::string directory = ::testing::TempDir() + "/evaluations_of_run";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  EXPECT_THAT(ReadEvaluations(directory, "a"), IsOkAndHolds(IsEmpty()));
  const auto append = [&](int64_t step, const std::string& run, double loss) {
    Evaluation evaluation = At(step);
    evaluation.run_id = run;
    evaluation.loss = loss;
    ASSERT_OK(AppendEvaluation(directory, evaluation));
  };
  append(20, "a", .5);
  append(10, "a", std::numeric_limits<double>::infinity());
  append(30, "b", .5);
  append(20, "a", .25);  // evaluated again
  ASSERT_OK(AppendDurably(directory + "/evaluations.jsonl",
                          "no line\n{\"global_step\":40,\"run_id\":\"a\""));
  ASSERT_OK_AND_ASSIGN(const std::vector<Evaluation> evaluations,
                       ReadEvaluations(directory, "a"));
  ASSERT_THAT(evaluations, SizeIs(2));
  EXPECT_EQ(evaluations[0].global_step, 10);
  EXPECT_TRUE(std::isnan(evaluations[0].loss));
  EXPECT_EQ(evaluations[1].global_step, 20);
  EXPECT_EQ(evaluations[1].loss, .25);
  EXPECT_EQ(evaluations[1].took, absl::Milliseconds(410));
  EXPECT_EQ(ValueOf(evaluations[1], "accuracy"), 0.9763);
  EXPECT_EQ(ValueOf(evaluations[1], "auc"), std::nullopt);
}

TEST(EvaluationLogTest, TheOwnerOfTheCheckpointTellsLinesOfOneStepApart) {
  const std::string directory = ::testing::TempDir() + "/evaluations_of_owner";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  for (const int64_t epoch : {7, 8, 0}) {
    Evaluation evaluation = At(20);
    evaluation.run_id = "a";
    evaluation.chief_epoch = epoch;
    EXPECT_EQ(ToJsonLine(evaluation).find("chief_epoch") == std::string::npos,
              epoch == 0);
    ASSERT_OK(AppendEvaluation(directory, evaluation));
  }
  for (const int64_t epoch : {7, 8, 0}) {
    ASSERT_OK_AND_ASSIGN(
        const std::vector<Evaluation> evaluations,
        ReadEvaluations(directory, "a", [epoch](const Evaluation& evaluation) {
          return evaluation.chief_epoch == epoch;
        }));
    ASSERT_THAT(evaluations, SizeIs(1));
    EXPECT_EQ(evaluations[0].chief_epoch, epoch);
    EXPECT_THAT(evaluations[0].metrics, SizeIs(1));
  }
}

TEST(EvaluationLogTest, ALineThatWasCutOffTakesNoOtherWithIt) {
  const std::string directory = ::testing::TempDir() + "/cut_off";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  ASSERT_OK(AppendDurably(directory + "/evaluations.jsonl", "{\"global_st"));
  Evaluation evaluation = At(20);
  evaluation.run_id = "a";
  ASSERT_OK(AppendEvaluation(directory, evaluation));
  EXPECT_THAT(ReadEvaluations(directory, "a"), IsOkAndHolds(SizeIs(1)));
}

TEST(EvaluationLogTest, LinesThatAreVeryDeepOrLongAreNoEvaluations) {
  const std::string directory = ::testing::TempDir() + "/deep_lines";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  const std::string path = directory + "/evaluations.jsonl";
  Evaluation evaluation = At(1);
  evaluation.run_id = "a";
  ASSERT_OK(AppendEvaluation(directory, evaluation));
  evaluation.global_step = 2;
  std::string long_line = ToJsonLine(evaluation);
  long_line.insert(1, "\"x\":\"" + std::string(2'000'000, 'x') + "\",");
  ASSERT_OK(AppendDurably(
      path, std::string(20'000'000, '[') + "\n" + long_line + "\n"));
  evaluation.global_step = 3;
  ASSERT_OK(AppendEvaluation(directory, evaluation));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Evaluation> read,
      ReadEvaluations(directory, "a", [](const Evaluation&) { return true; }));
  ASSERT_THAT(read, SizeIs(2));
  EXPECT_EQ(read[1].global_step, 3);
}

TEST(EvaluationLogTest, ADirectoryThatIsMissingIsNamed) {
  EXPECT_THAT(AppendEvaluation("/none", At(1)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none/eval")));
}

}  // namespace
}  // namespace parasol

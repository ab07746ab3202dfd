#include "deploy/local/run_result.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

RunResult Succeeded() {
  RunResult result;
  result.checkpoint = "/ckpt/ckpt-000000004000";
  result.global_step = 4000;
  result.examples_per_second = 12345.6;
  result.elapsed = absl::Milliseconds(21340);
  result.evaluation = EvaluationLine{4000, {{"accuracy", 0.9725}}, 0.125};
  result.metrics = {{"chief", "http://127.0.0.1:1/metrics"},
                    {"ps/0", "http://127.0.0.1:2/metrics"}};
  return result;
}

TEST(RunResultTest, JsonOfASuccess) {
  EXPECT_EQ(ToJson(Succeeded()),
            R"({"status":"succeeded","global_step":4000,)"
            R"("examples_per_second":12346.0,"seconds":21.34,)"
            R"("eval":{"accuracy":0.9725,"loss":0.125,"global_step":4000},)"
            R"("best":null,"checkpoint":"/ckpt/ckpt-000000004000",)"
            R"("metrics":{"chief":"http://127.0.0.1:1/metrics",)"
            R"("ps/0":"http://127.0.0.1:2/metrics"}})");
}

TEST(RunResultTest, JsonOfAFailureIsOneLineOfUtf8) {
  RunResult result;
  result.status = RunResult::Status::kFailed;
  result.error = "worker/1: say \"x\"\n\xff";
  EXPECT_EQ(ToJson(result),
            "{\"status\":\"failed\","
            "\"error\":\"worker/1: say \\\"x\\\"\\n\xEF\xBF\xBD\","
            "\"global_step\":0,\"examples_per_second\":0.0,\"seconds\":0.0,"
            "\"eval\":null,\"best\":null,\"checkpoint\":\"\",\"metrics\":{}}");
}

TEST(RunResultTest, SummaryIsForPeople) {
  EXPECT_EQ(Summary(Succeeded()),
            "Job succeeded at step 4,000 after 21.3 s.\n"
            "  accuracy:   97.25 % of the evaluation examples (loss 0.1250, "
            "step 4,000)\n"
            "  speed:      12,346 examples per second\n"
            "  checkpoint: /ckpt/ckpt-000000004000\n");
}

TEST(RunResultTest, TheBestCheckpointIsBesideTheLastOne) {
  RunResult result = Succeeded();
  result.best = BestCheckpoint{.path = "/ckpt/ckpt-000000001200",
                               .global_step = 1200,
                               .metric = "auc",
                               .value = 0.97};
  EXPECT_THAT(ToJson(result),
              HasSubstr(R"("best":{"metric":"auc","value":0.97,)"
                        R"("global_step":1200,)"
                        R"("checkpoint":"/ckpt/ckpt-000000001200"},)"
                        R"("checkpoint":"/ckpt/ckpt-000000004000")"));
  EXPECT_THAT(Summary(result),
              HasSubstr("  checkpoint: /ckpt/ckpt-000000004000\n"
                        "  best:       auc 0.9700 at step 1,200, "
                        "/ckpt/ckpt-000000001200\n"));
}

TEST(RunResultTest, AllMetricsAreThere) {
  RunResult result = Succeeded();
  result.evaluation->metrics = {
      {"accuracy", 0.85}, {"auc", 0.9034}, {"root_mean_squared_error", 0.325}};
  EXPECT_THAT(ToJson(result),
              HasSubstr(R"("eval":{"accuracy":0.85,"auc":0.9034,)"
                        R"("root_mean_squared_error":0.325,"loss":0.125,)"
                        R"("global_step":4000})"));
  EXPECT_THAT(
      Summary(result),
      HasSubstr("  accuracy:   85.00 % of the evaluation examples (loss "
                "0.1250, step 4,000)\n"
                "  auc:        0.9034\n"
                "  root_mean_squared_error: 0.3250\n"));
}

TEST(RunResultTest, WithoutAccuracyTheFirstMetricSaysOfWhichModel) {
  RunResult result = Succeeded();
  result.evaluation->metrics = {{"root_mean_squared_error", 1.5}};
  EXPECT_THAT(Summary(result),
              HasSubstr("  root_mean_squared_error: 1.5000 (loss 0.1250, step "
                        "4,000)\n"));
}

TEST(RunResultTest, ThousandsAreSeparated) {
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1000), "1,000");
  EXPECT_EQ(WithThousands(1234567), "1,234,567");
  EXPECT_EQ(WithThousands(-123456), "-123,456");
}

}  // namespace
}  // namespace parasol

// A loss, a metric, an optimizer and a data source of a user's own, as the
// README has them.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
namespace fs = std::filesystem;

constexpr absl::Duration kLimit = absl::Minutes(2);
constexpr char kCpu[] = "--device=cpu";
constexpr char kExample[] = "docs/examples/custom_model";
// Of 5,000 labels a share of .9 has the deviation .004; the rest is the
// model's.
constexpr double kCoverageTolerance = .02;

std::string Built(const std::string& path) {
  return absl::StrCat(getenv("TEST_SRCDIR"), "/", getenv("TEST_WORKSPACE"), "/",
                      path);
}

std::string Own(const std::string& program) {
  return Built(absl::StrCat(kExample, "/", program));
}

class CustomPartsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    fs::create_directories(Vectors());
    const auto drawn =
        RunSubprocess({.argv = {Own("make_vectors"), Vectors()}}, kLimit);
    ASSERT_OK(drawn);
    ASSERT_EQ(drawn->end.code(), 0) << drawn->standard_error;
  }

  static std::string Vectors() { return testing::TempDir() + "/vectors"; }

  // A directory for checkpoints, without any at first.
  static std::string Directory(const std::string& name) {
    const std::string directory = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name(), name);
    fs::remove_all(directory);
    return directory;
  }

  static absl::StatusOr<CompletedProcess> Run(
      const std::string& program, const std::string& checkpoints,
      const std::vector<std::string>& flags) {
    SubprocessOptions options;
    options.argv = {program, absl::StrCat("--job=", Own("quantile.textproto")),
                    "--data_dir=" + Vectors(),
                    "--checkpoint_dir=" + checkpoints};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    return RunSubprocess(options, kLimit);
  }

  static absl::StatusOr<CompletedProcess> Tool(
      const std::string& program, const std::vector<std::string>& arguments) {
    SubprocessOptions options;
    options.argv = {program};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.argv.push_back("--data_dir=" + Vectors());
    return RunSubprocess(options, kLimit);
  }

  static std::string LogOf(const std::string& checkpoints,
                           const std::string& task) {
    std::ifstream log(absl::StrCat(checkpoints, "/logs/", task, ".log"));
    return std::string(std::istreambuf_iterator<char>(log), {});
  }

  static json LastEvaluation(const std::string& checkpoints) {
    std::ifstream lines(checkpoints + "/evaluations.jsonl");
    std::string last = "{}";
    for (std::string line; std::getline(lines, line);) last = line;
    return json::parse(last, nullptr, /*allow_exceptions=*/false);
  }
};

TEST_F(CustomPartsTest, TrainsAloneAndGoesOnFromACheckpointWithTheSameBits) {
  const std::string clip = "--set=optimizer.global_clipnorm=10";
  const std::string whole = Directory("_whole");
  ASSERT_OK_AND_ASSIGN(CompletedProcess worker,
                       Run(Own("worker"), whole, {kCpu, clip}));
  EXPECT_EQ(worker.end.code(), 0) << worker.standard_error;
  const json want = LastEvaluation(whole);
  ASSERT_EQ(want["global_step"], 600) << want;
  EXPECT_THAT(want.value("coverage", 0.0), DoubleNear(.9, kCoverageTolerance));
  EXPECT_TRUE(want.contains("mean_absolute_error")) << want;

  const std::string parts = Directory("_parts");
  ASSERT_OK_AND_ASSIGN(
      worker, Run(Own("worker"), parts, {kCpu, clip, "--set=end.steps=250"}));
  EXPECT_EQ(worker.end.code(), 0) << worker.standard_error;
  EXPECT_EQ(LastEvaluation(parts)["global_step"], 250);
  ASSERT_OK_AND_ASSIGN(
      worker, Run(Own("worker"), parts, {kCpu, "--set=optimizer.adagrad={}"}));
  EXPECT_NE(worker.end.code(), 0);
  EXPECT_THAT(worker.standard_error,
              HasSubstr("the checkpoint has optimizer custom \"yogi\", the job "
                        "has optimizer adagrad"));
  ASSERT_OK_AND_ASSIGN(worker, Run(Own("worker"), parts, {kCpu, clip}));
  EXPECT_EQ(worker.end.code(), 0) << worker.standard_error;
  const json got = LastEvaluation(parts);
  EXPECT_EQ(got["global_step"], 600);
  EXPECT_EQ(got["loss"], want["loss"]);
  EXPECT_EQ(got["coverage"], want["coverage"]);
}

// A worker without a cluster tells its hooks everything, each thing once.
TEST_F(CustomPartsTest, AHookIsToldHowTheTrainingGoes) {
  const std::string checkpoints = Directory("");
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess worker,
      Run(Own("worker"), checkpoints, {kCpu, "--set=end.steps=400"}));
  EXPECT_EQ(worker.end.code(), 0) << worker.standard_error;
  EXPECT_THAT(worker.standard_error, HasSubstr("hooks: curves"));
  const std::vector<std::string> lines =
      absl::StrSplit(worker.standard_output, '\n', absl::SkipEmpty());
  EXPECT_THAT(
      lines,
      ElementsAre(HasSubstr("checkpoint of step 0: "),
                  AllOf(HasSubstr("epoch 1: loss "), HasSubstr("; 157 ")),
                  HasSubstr("checkpoint of step 200: "),
                  HasSubstr("evaluation of step 200: loss "),
                  AllOf(HasSubstr("epoch 2: loss "), HasSubstr("; 314 ")),
                  HasSubstr("checkpoint of step 400: "),
                  AllOf(HasSubstr("evaluation of step 400, the last one"),
                        HasSubstr(", coverage "))))
      << worker.standard_output;
}

// What `parasol` with the code finds in data, and makes of a checkpoint.
TEST_F(CustomPartsTest, TheToolWithTheCodeChecksEvaluatesAndPredicts) {
  const std::string checkpoints = Directory("");
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess worker,
      Run(Own("worker"), checkpoints, {kCpu, "--set=end.steps=50"}));
  ASSERT_EQ(worker.end.code(), 0) << worker.standard_error;

  ASSERT_OK_AND_ASSIGN(
      CompletedProcess tool,
      Tool(Own("parasol"), {"check", Own("quantile.textproto"), "--json"}));
  EXPECT_EQ(tool.end.code(), 0) << tool.standard_error;
  const json found = json::parse(tool.standard_output, nullptr, false);
  EXPECT_THAT(found["faults"], IsEmpty()) << found;
  ASSERT_THAT(found["data_sets"], SizeIs(2)) << found;
  EXPECT_EQ(found["data_sets"][0]["examples"], 10000);
  // The source itself says which column is the label.
  const json& columns = found["data_sets"][0]["columns"];
  ASSERT_THAT(columns, SizeIs(2)) << found;
  EXPECT_EQ(columns[0]["use"], "input vector");
  EXPECT_EQ(columns[1]["use"], "label");

  ASSERT_OK_AND_ASSIGN(
      tool, Tool(Own("parasol"), {"evaluate", checkpoints, kCpu, "--json"}));
  EXPECT_EQ(tool.end.code(), 0) << tool.standard_error;
  const json got = json::parse(tool.standard_output, nullptr, false);
  const json want = LastEvaluation(checkpoints);
  for (const char* name : {"loss", "coverage", "mean_absolute_error"}) {
    EXPECT_EQ(got[name], want[name]) << name;
  }

  const std::string outputs = checkpoints + "/outputs.csv";
  ASSERT_OK_AND_ASSIGN(tool, Tool(Own("parasol"), {"predict", checkpoints, kCpu,
                                                   "--output=" + outputs}));
  EXPECT_EQ(tool.end.code(), 0) << tool.standard_error;
  std::ifstream lines(outputs);
  int count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  EXPECT_EQ(count, 5001);  // with the line of names
}

TEST_F(CustomPartsTest, TheToolNamesWhatItLacksOrIsWrong) {
  struct Case {
    std::string program;
    std::string flag;
    std::string message;
  };
  const std::string plain = Built("tool/parasol");
  const std::string own = Own("parasol");
  const Case cases[] = {
      {plain, "--set=name=a", "no custom data source \"fvecs\" (it has: none)"},
      {plain, "--set=name=a", "as worker, evaluator and parasol"},
      {own, "--set=train.custom.type=fvec",
       "quantile.textproto:17:1: train: this program has no custom data "
       "source \"fvec\" (it has: fvecs)"},
      {own, "--set=model.loss.custom.parameter[0].value=1.5",
       "parameter quantile is \"1.5\", not a number from 0 to 1"},
      {own,
       "--set=model.metric[0].custom={type: \"coverage\" parameter { name: "
       "\"a\" }}",
       "parameter \"a\" is not known"},
      {own, "--set=model.input[0].dense.column[0].name=vectr",
       "the train data have no column \"vectr\", but vector, label; did you "
       "mean \"vector\"?"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.flag);
    ASSERT_OK_AND_ASSIGN(
        const CompletedProcess tool,
        Tool(c.program, {"check", Own("quantile.textproto"), c.flag}));
    EXPECT_EQ(tool.end.code(), 2);
    EXPECT_THAT(tool.standard_error, HasSubstr(c.message));
  }
}

// Replicas in step have the optimizer's slots once, and sum the gradients.
TEST_F(CustomPartsTest, TrainsMirrored) {
  const std::string checkpoints = Directory("");
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess worker,
      Run(Own("worker"), checkpoints,
          {"--set=strategy.mirrored={device: \"cpu:0\" device: \"cpu:1\"}",
           "--set=end.steps=300"}));
  EXPECT_EQ(worker.end.code(), 0) << worker.standard_error;
  EXPECT_THAT(LastEvaluation(checkpoints).value("coverage", 0.0),
              DoubleNear(.9, 2 * kCoverageTolerance));
}

TEST_F(CustomPartsTest, TrainsOnALocalCluster) {
  const std::string checkpoints = Directory("");
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess launcher,
      Run(Built("deploy/local/launcher"), checkpoints,
          {kCpu, absl::StrCat("--worker_binary=", Own("worker")),
           absl::StrCat("--evaluator_binary=", Own("evaluator")),
           absl::StrCat("--ps_binary=", Own("ps")), "--ps=2", "--workers=2"}));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  const std::vector<std::string> lines =
      absl::StrSplit(absl::StripSuffix(launcher.standard_output, "\n"), '\n');
  const json result = json::parse(lines.back(), nullptr, false);
  EXPECT_EQ(result["status"], "succeeded") << launcher.standard_output;
  EXPECT_THAT(result["eval"].value("coverage", 0.0),
              DoubleNear(.9, 2 * kCoverageTolerance));
  EXPECT_TRUE(fs::exists(checkpoints + "/BEST"));
  // Each process has the hook, and tells it of its own part.
  const std::string first = LogOf(checkpoints, "worker-0");
  for (const char* line :
       {"epoch 1: loss ", "epoch 3: loss ", "checkpoint of step 600: "}) {
    EXPECT_THAT(first, HasSubstr(line));
  }
  EXPECT_THAT(first, Not(HasSubstr("evaluation of step")));
  EXPECT_THAT(LogOf(checkpoints, "worker-1"),
              AllOf(HasSubstr("hooks: curves"), Not(HasSubstr("epoch 1: "))));
  EXPECT_THAT(LogOf(checkpoints, "evaluator-0"),
              HasSubstr("evaluation of step 600, the last one: loss "));
}

TEST_F(CustomPartsTest, WorkersSumAlongATree) {
  const std::string tree =
      "--set=strategy.multi_worker_mirrored={custom { type: \"tree\" "
      "parameter { name: \"width\" value: \"2\" } }}";
  const std::string checkpoints = Directory("");
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess launcher,
      Run(Built("deploy/local/launcher"), checkpoints,
          {kCpu, absl::StrCat("--worker_binary=", Own("worker")),
           absl::StrCat("--evaluator_binary=", Own("evaluator")), "--workers=3",
           tree, "--set=end.steps=200"}));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  EXPECT_THAT(LogOf(checkpoints, "worker-0"),
              HasSubstr("custom all-reduce tree, packs of"));
  EXPECT_THAT(LastEvaluation(checkpoints).value("coverage", 0.0),
              DoubleNear(.9, 2 * kCoverageTolerance));
}

TEST_F(CustomPartsTest, ReplicasOfOneProcessSumAlongATree) {
  const std::string checkpoints = Directory("");
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess worker,
      Run(Own("worker"), checkpoints,
          {"--set=strategy.mirrored={device: \"cpu:0\" device: \"cpu:1\" "
           "device: \"cpu:2\" custom { type: \"tree\" } }",
           "--set=end.steps=200"}));
  EXPECT_EQ(worker.end.code(), 0) << worker.standard_error;
  EXPECT_THAT(worker.standard_error,
              HasSubstr("gradients are summed by custom all-reduce "
                        "tree(width=2)"));
  EXPECT_THAT(LastEvaluation(checkpoints).value("coverage", 0.0),
              DoubleNear(.9, 2 * kCoverageTolerance));
}

TEST_F(CustomPartsTest, APsWithoutTheOptimizersCodeEndsTheJobAtItsStart) {
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess launcher,
      Run(Built("deploy/local/launcher"), Directory(""),
          {kCpu, absl::StrCat("--worker_binary=", Own("worker")),
           absl::StrCat("--evaluator_binary=", Own("evaluator")), "--ps=1",
           "--workers=1"}));
  EXPECT_NE(launcher.end.code(), 0);
  EXPECT_THAT(launcher.standard_error,
              AllOf(HasSubstr("no custom optimizer \"yogi\" (it has: none)"),
                    HasSubstr("as ps and as worker")));
}

TEST_F(CustomPartsTest, AWorkerWithoutTheCodeSaysWhichItLacks) {
  struct Case {
    std::vector<std::string> flags;
    std::string message;
  };
  const std::string mse = "--set=model.loss.mean_squared_error={}";
  const Case cases[] = {
      {{kCpu}, "model.loss: this program has no custom loss \"quantile\""},
      {{kCpu, mse}, "no custom data source \"fvecs\" (it has: none)"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    ASSERT_OK_AND_ASSIGN(const CompletedProcess worker,
                         Run(Built("worker/worker"), Directory(""), c.flags));
    EXPECT_EQ(worker.end.code(), 1);
    EXPECT_THAT(worker.standard_error, HasSubstr(c.message));
  }
}

TEST_F(CustomPartsTest, AWrongTypeOrParameterIsNamed) {
  struct Case {
    std::string flag;
    std::string message;
  };
  const Case cases[] = {
      {"--set=model.loss.custom.type=quantil",
       "no custom loss \"quantil\" (it has: quantile); did you mean "
       "\"quantile\"?"},
      {"--set=model.metric[0].custom.type=covrage",
       "no custom metric \"covrage\" (it has: coverage)"},
      {"--set=optimizer.custom.type=yoga",
       "optimizer: this program has no custom optimizer \"yoga\" (it has: "
       "yogi)"},
      {"--set=train.custom.type=fvec",
       "no custom data source \"fvec\" (it has: fvecs)"},
      {"--set=model.loss.custom.parameter[0].value=1.5",
       "model.loss.custom: parameter quantile is \"1.5\", not a number from 0 "
       "to 1"},
      {"--set=model.loss.custom.parameter[0].name=quantille",
       "parameter \"quantille\" is not known (known are: quantile)"},
      {"--set=optimizer.custom.slot[1].initial_value=1",
       "custom.slot declares m = 0, v = 1; \"yogi\" has m = 0, v = 1e-06"},
      {"--set=train.custom.file[0]=none.fvecs", "none.fvecs"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.flag);
    ASSERT_OK_AND_ASSIGN(const CompletedProcess worker,
                         Run(Own("worker"), Directory(""), {kCpu, c.flag}));
    EXPECT_NE(worker.end.code(), 0);
    EXPECT_THAT(worker.standard_error, HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace parasol

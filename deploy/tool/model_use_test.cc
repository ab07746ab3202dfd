// Predictions and evaluations of checkpoints, with the binaries as users start
// them.

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "deploy/tool/testing/run_tool.h"
#include "deploy/tool/testing/trained_job_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ModelUseTest : public TrainedJobFixture {
 protected:
  CompletedProcess Predict(const std::string& output) {
    return RunTool({"predict", Path("ckpt"), "--data_dir=" + Path(""),
                    "--device=cpu", "--output=" + Path(output)});
  }

  CompletedProcess Evaluate(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "evaluate", Path("ckpt"), "--data_dir=" + Path(""), "--device=cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTool(arguments);
  }
};

TEST_F(ModelUseTest, EvaluationIsThatOfTheJobItself) {
  Train("ckpt", 20);
  const CompletedProcess run = Evaluate({"--json"});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  const auto evaluated = nlohmann::json::parse(run.standard_output);
  std::ifstream log(Path("ckpt/evaluations.jsonl"));
  const auto trained = nlohmann::json::parse(log);
  EXPECT_EQ(evaluated["global_step"], 20);
  EXPECT_EQ(evaluated["examples"], kExamples);
  EXPECT_EQ(evaluated["loss"], trained["loss"]);
}

TEST_F(ModelUseTest, PredictionsAreInTheOrderOfTheDataAndGiveTheLoss) {
  Train("ckpt", 20);
  const CompletedProcess run = Predict("p.csv");
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  std::ifstream csv(Path("p.csv"));
  double squares = 0;
  int examples = 0;
  for (double rating; csv >> rating; ++examples) {
    squares += std::pow(rating - RatingOf(examples), 2);
  }
  EXPECT_EQ(examples, kExamples);
  const auto evaluated =
      nlohmann::json::parse(Evaluate({"--json"}).standard_output);
  EXPECT_NEAR(squares / kExamples, evaluated["loss"].get<double>(), 1e-4);
}

TEST_F(ModelUseTest, OtherDataAreChosenWithSet) {
  Train("ckpt", 2);
  std::ofstream(Path("few.dat")) << "1::2::3::0\n4::0::1::0\n";
  const CompletedProcess run = Evaluate({"--set=eval.ratings.file[0]=few.dat"});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  EXPECT_THAT(run.standard_output,
              AllOf(HasSubstr("step 2: "), HasSubstr("2 examples")));
}

TEST_F(ModelUseTest, FaultsAreNamedAndLeaveNoFile) {
  Train("ckpt", 2);
  for (const auto& [output, data, words] :
       {std::tuple("p.txt", Path(""), "must end with"),
        std::tuple("p.csv", Path("none"), "none")}) {
    const CompletedProcess run =
        RunTool({"predict", Path("ckpt"), "--data_dir=" + data, "--device=cpu",
                 "--output=" + Path(output)});
    EXPECT_EQ(run.end.code(), 2);
    EXPECT_THAT(run.standard_error, HasSubstr(words));
    EXPECT_FALSE(std::ifstream(Path(output)).good());
  }
}

}  // namespace
}  // namespace parasol

// First jobs of tables, with the binaries as users start them.

#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tool/testing/run_tool.h"
#include "tool/testing/trained_job_fixture.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class InitCommandTest : public TrainedJobFixture {
 protected:
  CompletedProcess Init(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"init", Path("t.csv")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTool(arguments);
  }

  // Trains the job that was written, and returns its last evaluation.
  nlohmann::json Evaluated(const std::string& job) {
    const CompletedProcess check =
        RunTool({"check", Path(job), "--data_dir=" + Path("")});
    EXPECT_EQ(check.end.code(), 0) << check.standard_error;
    const CompletedProcess run = RunBinary(
        "worker/worker", {"--job=" + Path(job), "--data_dir=" + Path(""),
                          "--checkpoint_dir=" + Path("ckpt"), "--device=cpu"});
    EXPECT_EQ(run.end.code(), 0) << run.standard_error;
    std::ifstream lines(Path("ckpt/evaluations.jsonl"));
    std::string line, last;
    while (std::getline(lines, line)) last = line;
    return nlohmann::json::parse(last, nullptr, false);
  }
};

TEST_F(InitCommandTest, AClassificationTrainsAndPredictsByName) {
  std::ofstream table(Path("t.csv"));
  table << "\"id, or so\"\tplan\tx y\tleaves\n";
  for (int i = 0; i < 1000; ++i) {
    const int x = i * 37 % 100;
    const bool pro = i % 3 == 0;
    table << "\"c\t" << i << "\"\t" << (pro ? "pro" : "basic") << "\t"
          << (i % 10 == 9 ? "" : absl::StrCat(x)) << "\t"
          << ((pro ? 30 : 60) < x ? "Yes" : "No") << "\n";
  }
  table.close();
  const CompletedProcess run =
      Init({"--label=leaves", "--output=" + Path("jobs/leaves.textproto")});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  EXPECT_THAT(run.standard_output,
              AllOf(HasSubstr("a binary classification with 2 columns of 1000 "
                              "lines\n"),
                    HasSubstr("left out: id, or so has another text"),
                    HasSubstr("  parasol check "),
                    HasSubstr("  parasol-launch --job=")));
  EXPECT_GT(Evaluated("jobs/leaves.textproto")["accuracy"].get<double>(), .85);
  const CompletedProcess predict = RunTool(
      {"predict", Path("ckpt"), "--data_dir=" + Path(""), "--device=cpu",
       "--keep=\"id, or so\"", "--output=" + Path("p.csv")});
  ASSERT_EQ(predict.end.code(), 0) << predict.standard_error;
  std::ifstream scores(Path("p.csv"));
  std::string line;
  std::getline(scores, line);
  EXPECT_EQ(line, "\"id, or so\",probability,class");
  std::getline(scores, line);
  EXPECT_THAT(line,
              AllOf(StartsWith("c\t"), testing::ContainsRegex(",(Yes|No)$")));
  // A file that is there stays.
  const CompletedProcess again =
      Init({"--label=leaves", "--output=" + Path("jobs/leaves.textproto")});
  EXPECT_EQ(again.end.code(), 2);
  EXPECT_THAT(again.standard_error, HasSubstr("is there already"));
}

TEST_F(InitCommandTest, ARegressionLearnsNumbersInTheirUnit) {
  std::ofstream table(Path("t.csv"));
  table << "area;size;price\n";
  for (int i = 0; i < 1000; ++i) {
    const int size = 30 + i * 17 % 120;
    table << "nsew"[i % 4] << ";" << size << ";"
          << 50'000 + 3000 * size + 20'000 * (i % 4) << "\n";
  }
  table.close();
  const CompletedProcess run =
      Init({"--label=price", "--output=" + Path("price.textproto")});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  EXPECT_GT(Evaluated("price.textproto")["r_squared"].get<double>(), .95);
}

TEST_F(InitCommandTest, FaultsAreOneLine) {
  std::ofstream(Path("t.csv")) << "x,y\n1,2\n2,3\n";
  for (const auto& [flags, words] :
       {std::pair(std::vector<std::string>{}, "--label is missing"),
        {{"--label=z"}, "there is no such column, but x, y"},
        {{"--label=y", "--learn=all"}, "--learn=all"}}) {
    const CompletedProcess run = Init(flags);
    EXPECT_EQ(run.end.code(), 2);
    EXPECT_THAT(run.standard_error,
                AllOf(StartsWith("parasol: "), HasSubstr(words)));
  }
  EXPECT_EQ(RunTool({"init", Path("none.csv"), "--label=y"}).end.code(), 2);
}

}  // namespace
}  // namespace parasol

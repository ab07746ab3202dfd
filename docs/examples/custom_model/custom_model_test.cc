// The example as its README has it.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "serving/testing/http_client.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
namespace fs = std::filesystem;

constexpr absl::Duration kLimit = absl::Minutes(2);
constexpr char kExample[] = "docs/examples/custom_model";

std::string Built(const std::string& path) {
  return absl::StrCat(getenv("TEST_SRCDIR"), "/", getenv("TEST_WORKSPACE"), "/",
                      path);
}

// Returns what a server has logged, up to the line that has `words`.
std::string LogUpTo(const std::string& words, Subprocess& server) {
  std::string log;
  char byte;
  while (read(server.error_pipe(), &byte, 1) == 1) {
    log += byte;
    if (byte == '\n' && absl::StrContains(log, words)) return log;
  }
  ADD_FAILURE() << "no \"" << words << "\" in " << log;
  return log;
}

// Returns the number behind `words`; 0 if they are not there.
int NumberBehind(const std::string& words, const std::string& text) {
  const size_t at = text.find(words);
  return at == std::string::npos ? 0
                                 : std::atoi(text.c_str() + at + words.size());
}

class CustomModelTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto drawn = RunSubprocess(
        {.argv = {Built("deploy/local/make_digits"), "--out=" + Digits(),
                  "--train=4000", "--test=500"}},
        kLimit);
    ASSERT_OK(drawn);
    ASSERT_EQ(drawn->end.code(), 0) << drawn->standard_error;
  }

  static std::string Digits() { return testing::TempDir() + "/digits"; }

  static std::string Checkpoints() {
    return testing::TempDir() +
           testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  // Runs a program with the example's job, and a directory for checkpoints.
  static absl::StatusOr<CompletedProcess> Run(
      const std::string& program, const std::vector<std::string>& flags) {
    fs::remove_all(Checkpoints());
    SubprocessOptions options;
    options.argv = {Built(program),
                    absl::StrCat("--job=", Built(kExample), "/job.textproto"),
                    "--data_dir=" + Digits(), "--device=cpu",
                    "--checkpoint_dir=" + Checkpoints()};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    return RunSubprocess(options, kLimit);
  }
};

TEST_F(CustomModelTest, TrainsAlone) {
  ASSERT_OK_AND_ASSIGN(const CompletedProcess worker,
                       Run(absl::StrCat(kExample, "/worker"), {}));
  EXPECT_EQ(worker.end.code(), 0) << worker.standard_error;
  EXPECT_THAT(worker.standard_error, HasSubstr("step 600: accuracy 0.9"));
}

TEST_F(CustomModelTest, TrainsOnALocalCluster) {
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess launcher,
      Run("deploy/local/launcher",
          {absl::StrCat("--worker_binary=", Built(kExample), "/worker"),
           absl::StrCat("--evaluator_binary=", Built(kExample), "/evaluator"),
           "--workers=2"}));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  const std::vector<std::string> lines =
      absl::StrSplit(absl::StripSuffix(launcher.standard_output, "\n"), '\n');
  const auto result = nlohmann::json::parse(lines.back(), nullptr, false);
  EXPECT_EQ(result["status"], "succeeded") << launcher.standard_output;
  EXPECT_GT(double{result["eval"]["accuracy"]}, .9);
}

TEST_F(CustomModelTest, TheToolWithTheLayersCodePredicts) {
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess worker,
      Run(absl::StrCat(kExample, "/worker"), {"--set=end.steps=20"}));
  ASSERT_EQ(worker.end.code(), 0) << worker.standard_error;
  const std::string outputs = Checkpoints() + "/outputs.jsonl";
  const auto predict = [&](const std::string& program) {
    return RunSubprocess({.argv = {Built(program), "predict", Checkpoints(),
                                   "--data_dir=" + Digits(), "--device=cpu",
                                   "--layer=maxout", "--output=" + outputs}},
                         kLimit);
  };
  ASSERT_OK_AND_ASSIGN(CompletedProcess tool, predict("tool/parasol"));
  EXPECT_EQ(tool.end.code(), 1);
  EXPECT_THAT(tool.standard_error,
              AllOf(HasSubstr("no custom layer \"maxout\""),
                    HasSubstr("as worker, evaluator and parasol")));
  EXPECT_FALSE(fs::exists(outputs));
  ASSERT_OK_AND_ASSIGN(tool, predict(absl::StrCat(kExample, "/parasol")));
  EXPECT_EQ(tool.end.code(), 0) << tool.standard_error;
  std::ifstream lines(outputs);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_THAT(nlohmann::json::parse(line, nullptr, false)["maxout"], SizeIs(64))
      << line;
}

TEST_F(CustomModelTest, TheToolWithTheLayersCodeServes) {
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess worker,
      Run(absl::StrCat(kExample, "/worker"), {"--set=end.steps=20"}));
  ASSERT_EQ(worker.end.code(), 0) << worker.standard_error;
  SubprocessOptions options;
  options.argv = {Built(absl::StrCat(kExample, "/parasol")),
                  "serve",
                  Checkpoints(),
                  "--port=0",
                  "--host=127.0.0.1",
                  "--name=digits",
                  "--device=cpu"};
  options.standard_error = OutputTo::Pipe();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Subprocess> server,
                       Subprocess::Start(options));
  HttpClient client(NumberBehind("HTTP on 127.0.0.1:",
                                 LogUpTo("serving version 20", *server)));
  const nlohmann::json image(28, std::vector<int>(28, 0));
  const HttpAnswer answer =
      client.Post("/v1/models/digits:predict",
                  nlohmann::json{{"instances", {image}}}.dump());
  EXPECT_EQ(answer.status, 200) << answer.body;
  const auto body = nlohmann::json::parse(answer.body, nullptr, false);
  ASSERT_THAT(body["predictions"], SizeIs(1)) << answer.body;
  EXPECT_THAT(body["predictions"][0], SizeIs(10)) << answer.body;
  server->Terminate();
  EXPECT_OK(server->Wait(absl::Seconds(60)));
}

TEST_F(CustomModelTest, AWorkerWithoutTheLayersCodeSaysSo) {
  ASSERT_OK_AND_ASSIGN(const CompletedProcess worker, Run("worker/worker", {}));
  EXPECT_EQ(worker.end.code(), 1);
  EXPECT_THAT(worker.standard_error,
              AllOf(HasSubstr("model.layer[1] \"maxout\""),
                    HasSubstr("no custom layer \"maxout\"")));
}

}  // namespace
}  // namespace parasol

// The best checkpoint of a run in the place of the newest one, with the
// binaries as users start them.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tool/testing/run_tool.h"
#include "tool/testing/trained_job_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

// The run "ckpt" of 20 steps, whose best checkpoint is of step 10.
class BestModelTest : public TrainedJobFixture {
 protected:
  BestModelTest() {
    Train("ckpt", 10);
    Train("ckpt", 20);
    std::ofstream(Path("ckpt/BEST"))
        << R"({"checkpoint":"ckpt-000000000010","global_step":10,)"
        << R"("metric":"loss","value":0.5})";
  }

  CompletedProcess Run(const std::string& command, const std::string& path,
                       const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {command, Path(path)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTool(arguments);
  }

  // The bytes of the file "out" that a command has written.
  std::string Written(const CompletedProcess& run, const std::string& out) {
    EXPECT_EQ(run.end.code(), 0) << run.standard_error;
    std::ifstream file(Path(out), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
};

TEST_F(BestModelTest, EachCommandTakesTheBestOne) {
  const std::string data = "--data_dir=" + Path("");
  for (const auto& [path, flag] :
       {std::pair("ckpt", "--best"), std::pair("ckpt/BEST", "--nobest"),
        std::pair("ckpt/BEST", "--best")}) {
    SCOPED_TRACE(path);
    const CompletedProcess inspected =
        RunTool({"checkpoint", "show", Path(path), flag, "--json"});
    ASSERT_EQ(inspected.end.code(), 0) << inspected.standard_error;
    EXPECT_THAT(inspected.standard_output, HasSubstr("\"global_step\": 10"));
    const CompletedProcess evaluated =
        Run("evaluate", path, {flag, data, "--device=cpu", "--json"});
    ASSERT_EQ(evaluated.end.code(), 0) << evaluated.standard_error;
    EXPECT_EQ(nlohmann::json::parse(evaluated.standard_output)["global_step"],
              10);
    const std::vector<std::string> predict = {flag, data, "--device=cpu",
                                              "--output=" + Path("p.npy")};
    const std::vector<std::string> npz = {flag, "--format=npz",
                                          "--output=" + Path("m.npz")};
    const std::vector<std::string> onnx = {flag, "--format=onnx",
                                           "--output=" + Path("m.onnx")};
    const std::string best_p = Written(Run("predict", path, predict), "p.npy");
    const std::string best_npz = Written(Run("export", path, npz), "m.npz");
    const std::string best_onnx = Written(Run("export", path, onnx), "m.onnx");
    const auto of_step = [&](const char* step, std::vector<std::string> flags,
                             const char* command, const char* out) {
      flags[0] = "--nobest";
      return Written(
          Run(command, std::string("ckpt/ckpt-0000000000") + step, flags), out);
    };
    EXPECT_EQ(best_p, of_step("10", predict, "predict", "p.npy"));
    EXPECT_NE(best_p, of_step("20", predict, "predict", "p.npy"));
    EXPECT_EQ(best_npz, of_step("10", npz, "export", "m.npz"));
    EXPECT_EQ(best_onnx, of_step("10", onnx, "export", "m.onnx"));
  }
  EXPECT_EQ(RunTool({"diff", Path("ckpt/BEST"), Path("ckpt/ckpt-000000000010")})
                .end.code(),
            0);
  EXPECT_EQ(RunTool({"diff", Path("ckpt/BEST"), Path("ckpt")}).end.code(), 1);
}

TEST_F(BestModelTest, AJobBeginsWithTheBestOfAnotherRun) {
  std::ofstream(Path("job.textproto"), std::ios::app)
      << "\nwarm_start { checkpoint: \"" << Path("ckpt/BEST") << "\" }\n";
  Train("warm", 1);
  const auto loss = [this](const std::string& path) {
    const CompletedProcess evaluated = Run(
        "evaluate", path, {"--data_dir=" + Path(""), "--device=cpu", "--json"});
    return nlohmann::json::parse(evaluated.standard_output)["loss"]
        .get<double>();
  };
  EXPECT_EQ(loss("warm/ckpt-000000000000"), loss("ckpt/BEST"));
  EXPECT_NE(loss("warm/ckpt-000000000000"), loss("ckpt"));
}

TEST_F(BestModelTest, WhatCantBeTheBestIsOneLine) {
  for (const char* command : {"evaluate", "export", "serve"}) {
    std::vector<std::string> flags = {"--best"};
    if (command == std::string("export")) {
      flags.push_back("--format=npz");
      flags.push_back("--output=" + Path("m.npz"));
    }
    const CompletedProcess run = Run(command, "ckpt/ckpt-000000000020", flags);
    EXPECT_EQ(run.end.code(), 2) << command;
    EXPECT_THAT(run.standard_error,
                HasSubstr("is a checkpoint; name the directory"))
        << command;
  }
  const CompletedProcess shown =
      RunTool({"checkpoint", "show", Path("ckpt/ckpt-000000000020"), "--best"});
  EXPECT_EQ(shown.end.code(), 2);
  EXPECT_THAT(shown.standard_error,
              HasSubstr("is a checkpoint; name the directory"));
  std::filesystem::remove(Path("ckpt/BEST"));
  const CompletedProcess run =
      RunTool({"checkpoint", "show", Path("ckpt"), "--best"});
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_THAT(run.standard_error, HasSubstr("keep_best"));
  const CompletedProcess served =
      Run("serve", "ckpt", {"--best", "--version=20", "--port=0"});
  EXPECT_EQ(served.end.code(), 2);
  EXPECT_THAT(served.standard_error, HasSubstr("give --version or --best"));
}

}  // namespace
}  // namespace parasol

// The `parasol` binary as users start it: its output, errors and exit codes.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_manifest.h"
#include "storage/durable_file.h"
#include "tool/testing/run_tool.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

// One line on stderr that names the tool.
auto IsOneErrorLineWith(const std::string& words) {
  return AllOf(MatchesRegex("parasol: [^\n]*\n"), HasSubstr(words));
}

TEST(ParasolToolTest, HelpNamesTheCommandsAndEachHasItsOwnFlags) {
  const CompletedProcess general = RunTool({"--help"});
  EXPECT_EQ(general.end.code(), 0);
  EXPECT_THAT(general.standard_output,
              AllOf(HasSubstr("  checkpoint: "), HasSubstr("  predict: ")));
  const CompletedProcess checkpoint = RunTool({"checkpoint", "--help"});
  EXPECT_EQ(checkpoint.end.code(), 0);
  EXPECT_THAT(checkpoint.standard_output,
              AllOf(HasSubstr("parasol checkpoint show /ckpt/mnist\n"),
                    HasSubstr("--[no]json"), Not(HasSubstr("--tolerance"))));
}

TEST(ParasolToolTest, OutputThatCannotBeWrittenIsAnError) {
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c",
                  "tool/parasol cluster --from=hosts --hosts=a,b "
                  "--task=worker/0 > /dev/full"};
  const absl::StatusOr<CompletedProcess> run =
      RunSubprocess(std::move(options), absl::Minutes(1));
  ASSERT_OK(run);
  EXPECT_EQ(run->end.code(), 1);
  EXPECT_EQ(run->standard_error, "parasol: stdout can't be written\n");
}

TEST(ParasolToolTest, BadCommandLinesAreOneLineAndExitCode2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "no command"},
      {{"evaluat", "x"}, "unknown command evaluat (did you mean evaluate?)"},
      {{"checkpoint"}, "ls, verify or show, or what to look at, is missing"},
      {{"checkpoint", "show"}, "is missing"},
      {{"checkpoint", "show", "a", "b"}, "unexpected argument b"},
      {{"checkpoint", "list", "a"}, "unknown action list"},
      {{"checkpoint", "ls", "a", "--tolerance=1"}, "unknown flag --tolerance"},
      {{"checkpoint", "show", "/none"}, "/none"},
      {{"inspect", "/none"}, "/none"},
      {{"checkpoint", "ls", "/none"}, "/none"},
      {{"checkpoint", "verify", "/none"}, "/none"},
      {{"check"}, "JOB is missing"},
      {{"check", "/none", "--ps=-1"}, "--ps=-1"},
      {{"check", "/none", "--adapt"}, "--adapt: needs --output"},
      {{"check", "/none", "--data_dir=/none"}, "--data_dir=/none"},
      {{"status"}, "CHIEF is missing"},
      {{"status", "chief-0"}, "chief-0: is not an address"},
      {{"status", "chief-0:0"}, "chief-0:0: is not an address"},
      {{"status", "a:1", "--timeout=0s"}, "--timeout=0"},
      {{"trace"}, "CHIEF is missing"},
      {{"trace", "chief-0:1"}, "--output: is missing"},
      {{"trace", "chief-0:1", "--output=t.json", "--steps=0"}, "--steps=0"},
      {{"why"}, "CHIEF is missing"},
      {{"why", "chief-0"}, "chief-0: is not an address"},
      {{"diff", "/none"}, "A or B is missing"},
      {{"diff", "/none", "/none", "--tolerance=-1"}, "--tolerance=-1"}};
  for (const auto& [arguments, words] : cases) {
    const CompletedProcess run = RunTool(arguments);
    EXPECT_EQ(run.end.code(), 2) << words;
    EXPECT_THAT(run.standard_error, IsOneErrorLineWith(words));
    EXPECT_THAT(run.standard_output, IsEmpty());
  }
}

TEST(ParasolToolTest, CheckReportsAllFaultsEachAsALine) {
  const std::string job = EmptyTestDirectory() + "/job.textproto";
  std::ofstream(job) << "model { input_shape: 4 layer { dense { unit: 1 } }\n"
                        "loss { mean_squared_eror {} } }\n"
                        "train { csv { file: 'a' label { column: 'y' } } }\n"
                        "optimizer { sgd {} }\n";
  const CompletedProcess run = RunTool({"check", job, "--nodata"});
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_THAT(run.standard_error,
              AllOf(StartsWith(job + ":1:40: \"unit\""),
                    HasSubstr(job + ":2:8: \"mean_squared_eror\""),
                    HasSubstr(job + ": end: neither steps nor epochs")));
  const CompletedProcess json =
      RunTool({"check", job, "--nodata", "--json", "--set=end.steps=3"});
  EXPECT_EQ(json.end.code(), 2);
  EXPECT_EQ(nlohmann::json::parse(json.standard_output)["faults"].size(), 2);
}

TEST(ParasolToolTest, AChiefThatDoesNotAnswerIsOneLineAndExitCode138) {
  const CompletedProcess run =
      RunTool({"status", "127.0.0.1:1", "--timeout=1s"});
  EXPECT_EQ(run.end.code(), 138);
  EXPECT_THAT(
      run.standard_error,
      IsOneErrorLineWith("chief at 127.0.0.1:1: nothing listens there"));
}

TEST(ParasolToolTest, CheckpointsAreShownAsTextOrJson) {
  const std::string directory = EmptyTestDirectory();
  ASSERT_OK(ModelCheckpoint().Write(directory));
  const CompletedProcess text = RunTool({"checkpoint", "show", directory});
  EXPECT_EQ(text.end.code(), 0);
  EXPECT_THAT(text.standard_output, StartsWith("checkpoint  " + directory));
  const CompletedProcess json =
      RunTool({"checkpoint", "show", "--json", directory});
  EXPECT_EQ(nlohmann::json::parse(json.standard_output)["global_step"], 12);
}

TEST(ParasolToolTest, DamageIsExitCode1OfShowAndVerifyAnd2OfDiff) {
  const std::string directory = EmptyTestDirectory();
  ASSERT_OK(ModelCheckpoint().Write(directory));
  const std::string checkpoint = ModelCheckpoint().PathIn(directory);
  std::filesystem::resize_file(checkpoint + "/ps-1.sst", 100);
  const CompletedProcess show = RunTool({"checkpoint", "show", checkpoint});
  EXPECT_EQ(show.end.code(), 1);
  EXPECT_THAT(show.standard_error, IsOneErrorLineWith("ps-1.sst"));
  const CompletedProcess list = RunTool({"checkpoint", "ls", directory});
  EXPECT_EQ(list.end.code(), 0);
  EXPECT_THAT(list.standard_output, HasSubstr("damaged"));
  const CompletedProcess verify = RunTool({"checkpoint", "verify", directory});
  EXPECT_EQ(verify.end.code(), 1);
  EXPECT_THAT(verify.standard_output, HasSubstr("ps-1.sst: has 100 bytes"));
  EXPECT_THAT(verify.standard_error, IsEmpty());
  const CompletedProcess diff = RunTool({"diff", checkpoint, checkpoint});
  EXPECT_EQ(diff.end.code(), 2);
  EXPECT_THAT(diff.standard_error, IsOneErrorLineWith("ps-1.sst"));
}

TEST(ParasolToolTest, WholeCheckpointsAreListedAndVerified) {
  const std::string directory = EmptyTestDirectory();
  ModelCheckpoint model;
  ASSERT_OK(model.Write(directory));
  model.step = 20;
  ASSERT_OK(model.Write(directory));
  const CompletedProcess verify =
      RunTool({"checkpoint", "verify", directory, "--json"});
  EXPECT_EQ(verify.end.code(), 0);
  const auto json = nlohmann::json::parse(verify.standard_output);
  EXPECT_EQ(json["checkpoints"].size(), 2);
  EXPECT_EQ(json["checkpoints"][1]["global_step"], 20);
  EXPECT_TRUE(json["checkpoints"][1]["damage"].empty());
  const CompletedProcess list = RunTool({"checkpoint", "ls", directory});
  EXPECT_EQ(list.end.code(), 0);
  EXPECT_THAT(list.standard_output, HasSubstr("whole"));
}

TEST(ParasolToolTest, VerifyDoesNotSucceedWithoutACheckpoint) {
  const std::string directory = EmptyTestDirectory();
  const CompletedProcess verify = RunTool({"checkpoint", "verify", directory});
  EXPECT_EQ(verify.end.code(), 2);
  EXPECT_THAT(verify.standard_error,
              IsOneErrorLineWith(directory + ": has no checkpoint"));
  EXPECT_EQ(RunTool({"checkpoint", "ls", directory}).end.code(), 0);
  // A checkpoint without its manifest is damaged, however it is named.
  ASSERT_OK(ModelCheckpoint().Write(directory));
  const std::string checkpoint = ModelCheckpoint().PathIn(directory);
  std::filesystem::remove(checkpoint + "/MANIFEST");
  for (const std::string& name : {checkpoint, checkpoint + "/", directory}) {
    EXPECT_EQ(RunTool({"checkpoint", "verify", name}).end.code(), 1) << name;
  }
}

TEST(ParasolToolTest, OneThatCantBeReadHidesNoOther) {
  const std::string directory = EmptyTestDirectory();
  ModelCheckpoint model;
  for (const int64_t step : {10, 20, 30}) {
    model.step = step;
    ASSERT_OK(model.Write(directory));
  }
  durable::CheckpointManifest newer;
  newer.set_global_step(20);
  newer.set_format_version(1000);
  model.step = 20;
  ASSERT_OK(WriteFileDurably(model.PathIn(directory) + "/MANIFEST",
                             EncodeManifest(newer)));
  for (const char* action : {"ls", "verify"}) {
    const CompletedProcess run = RunTool({"checkpoint", action, directory});
    EXPECT_EQ(run.end.code(), 1) << action;
    EXPECT_THAT(run.standard_error, IsOneErrorLineWith("format_version"));
    EXPECT_THAT(run.standard_output,
                AllOf(HasSubstr("\n  10 "), HasSubstr("\n  30 "),
                      HasSubstr("unreadable"), HasSubstr("format_version")));
  }
  // Damage is told of before what can't be read.
  model.step = 30;
  std::filesystem::resize_file(model.PathIn(directory) + "/ps-1.sst", 100);
  const CompletedProcess verify =
      RunTool({"checkpoint", "verify", directory, "--json"});
  EXPECT_EQ(verify.end.code(), 1);
  const auto json = nlohmann::json::parse(verify.standard_output);
  EXPECT_TRUE(json["checkpoints"][0]["unreadable"].is_null());
  EXPECT_THAT(json["checkpoints"][1]["unreadable"].get<std::string>(),
              HasSubstr("format_version"));
  EXPECT_EQ(json["checkpoints"][2]["damage"].size(), 1);
}

TEST(ParasolToolTest, DiffEndsAsDiffDoes) {
  const std::string directory = EmptyTestDirectory();
  ModelCheckpoint other;
  other.kernel[0] = 1.5;
  ASSERT_OK(ModelCheckpoint().Write(directory + "/a"));
  ASSERT_OK(other.Write(directory + "/b"));
  EXPECT_EQ(RunTool({"diff", directory + "/a", directory + "/a"}).end.code(),
            0);
  const CompletedProcess differ =
      RunTool({"diff", directory + "/a", directory + "/b"});
  EXPECT_EQ(differ.end.code(), 1);
  EXPECT_THAT(differ.standard_output,
              HasSubstr("dense/kernel: 1 of 6 elements differ, by 0.5"));
  EXPECT_EQ(
      RunTool({"diff", directory + "/a", directory + "/b", "--tolerance=0.5"})
          .end.code(),
      0);
}

}  // namespace
}  // namespace parasol

#include "cluster/cluster_spec/role_flags.h"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_matchers.h"
#include "cluster/cluster_spec/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::ElementsAre;
using testing::ExitedWithCode;
using testing::HasSubstr;

class RoleFlagsTest : public testing::Test {
 protected:
  ~RoleFlagsTest() override { unsetenv("TF_CONFIG"); }

  absl::FlagSaver flags_;
};

TEST_F(RoleFlagsTest, WorkersAloneAreTrainedUnderMultiWorkerMirrored) {
  setenv("TF_CONFIG",
         R"({"cluster": {"worker": ["a:1", "b:1"]},
             "task": {"type": "worker", "index": 0}})",
         /*overwrite=*/1);
  for (const std::optional<StrategyKind> flag :
       {std::optional<StrategyKind>(),
        std::optional(StrategyKind::kMultiWorkerMirrored)}) {
    absl::SetFlag(&FLAGS_strategy, flag);
    const auto config = TaskConfigFromEnvironment(Role::kWorker);
    ASSERT_OK(config);
    EXPECT_TRUE(config->is_chief);
    EXPECT_EQ(config->num_workers, 2);
  }
  absl::SetFlag(&FLAGS_strategy, StrategyKind::kParameterServer);
  EXPECT_THAT(TaskConfigFromEnvironment(Role::kWorker),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("parameter_server")));
}

// --check_config accepts the workers that the start does, and no others.
TEST_F(RoleFlagsTest, CheckConfigTakesWorkersAloneAsTheStartDoes) {
  const auto set_task = [](int index) {
    setenv("TF_CONFIG",
           absl::StrCat(R"({"cluster": {"worker": ["a:1", "b:1"]},
                            "task": {"type": "worker", "index": )",
                        index, "}}")
               .c_str(),
           /*overwrite=*/1);
  };
  absl::SetFlag(&FLAGS_check_config, true);
  for (const int index : {0, 1}) {
    set_task(index);
    EXPECT_EXIT(TaskConfigOrExit(Role::kWorker), ExitedWithCode(0), "");
  }
  set_task(2);
  EXPECT_EXIT(TaskConfigOrExit(Role::kWorker), ExitedWithCode(2),
              "task.index: 2 is not in job \"worker\"");
}

TEST_F(RoleFlagsTest, AChiefWithoutPsIsRefusedByItsKey) {
  setenv("TF_CONFIG",
         R"({"cluster": {"master": ["a:1"], "worker": ["b:2"]},
             "task": {"type": "worker", "index": 0}})",
         /*overwrite=*/1);
  constexpr char kWant[] = "TF_CONFIG: cluster.master: a:1, but without ps";
  for (const bool checks : {false, true}) {
    absl::SetFlag(&FLAGS_check_config, checks);
    EXPECT_EXIT(TaskConfigOrExit(Role::kWorker), ExitedWithCode(2), kWant);
  }
  // Its specification has a place for this chief, so the line is printed.
  absl::SetFlag(&FLAGS_strategy, StrategyKind::kMultiWorkerMirrored);
  EXPECT_EXIT(TaskConfigOrExit(Role::kWorker), ExitedWithCode(0), kWant);
  absl::SetFlag(&FLAGS_check_config, false);
  EXPECT_EXIT(TaskConfigOrExit(Role::kWorker), ExitedWithCode(2), kWant);
}

TEST_F(RoleFlagsTest, AStrategyOfOneProcessHasNoCluster) {
  absl::SetFlag(&FLAGS_strategy, StrategyKind::kMirrored);
  unsetenv("TF_CONFIG");
  const auto alone = TaskConfigFromEnvironment(Role::kWorker);
  ASSERT_OK(alone);
  EXPECT_EQ(alone->strategy, StrategyKind::kMirrored);
  setenv("TF_CONFIG",
         R"({"cluster": {"worker": ["a:1"], "ps": ["b:1"]},
             "task": {"type": "worker", "index": 0}})",
         /*overwrite=*/1);
  EXPECT_THAT(TaskConfigFromEnvironment(Role::kWorker),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("mirrored strategy trains in one process")));
}

TEST_F(RoleFlagsTest, StrategyIsReadAndWrittenByName) {
  for (const StrategyKind strategy :
       {StrategyKind::kParameterServer, StrategyKind::kMultiWorkerMirrored,
        StrategyKind::kHybrid, StrategyKind::kDefault, StrategyKind::kOneDevice,
        StrategyKind::kMirrored, StrategyKind::kCentralStorage}) {
    StrategyKind read;
    std::string error;
    EXPECT_TRUE(AbslParseFlag(AbslUnparseFlag(strategy), &read, &error));
    EXPECT_EQ(read, strategy);
  }
  StrategyKind read;
  std::string error;
  EXPECT_FALSE(AbslParseFlag("mirror", &read, &error));
  EXPECT_THAT(error, HasSubstr("mirrored or central_storage"));
}

constexpr char kCluster[] = R"({"ps": ["p:1"], "worker": ["a:1", "b:1"]})";

// Returns the path of a file with this text.
std::string FileWith(const std::string& text) {
  const std::string path = testing::TempDir() + "/cluster.json";
  std::ofstream(path) << text;
  return path;
}

TEST_F(RoleFlagsTest, AFileAndATaskAreWhatTfConfigIs) {
  unsetenv("TF_CONFIG");
  absl::SetFlag(&FLAGS_task, "worker/1");
  for (const std::string& text :
       {std::string(kCluster),
        absl::StrCat(R"({"cluster": )", kCluster, "}")}) {
    absl::SetFlag(&FLAGS_cluster_spec, FileWith(text));
    const auto of_file = TaskConfigFromEnvironment(Role::kWorker);
    ASSERT_OK(of_file);
    EXPECT_THAT(
        of_file->place_flags,
        ElementsAre("--cluster_spec=" + FileWith(text), "--task=worker/1"));
    const auto of_variable = ParseTfConfig(
        absl::StrCat(R"({"cluster": )", kCluster,
                     R"(, "task": {"type": "worker", "index": 1}})"),
        Role::kWorker, std::nullopt);
    ASSERT_OK(of_variable);
    EXPECT_EQ(CheckConfigLine(*of_file), CheckConfigLine(*of_variable));
  }
}

TEST_F(RoleFlagsTest, TfConfigAndTheFlagsMustAgree) {
  absl::SetFlag(&FLAGS_cluster_spec, FileWith(kCluster));
  absl::SetFlag(&FLAGS_task, "worker/1");
  const auto set = [](absl::string_view cluster, int index) {
    setenv(
        "TF_CONFIG",
        absl::StrCat(R"({"cluster": )", cluster,
                     R"(, "task": {"type": "worker", "index": )", index, "}}")
            .c_str(),
        /*overwrite=*/1);
  };
  set(kCluster, 1);
  EXPECT_OK(TaskConfigFromEnvironment(Role::kWorker));
  set(kCluster, 0);
  EXPECT_THAT(TaskConfigFromEnvironment(Role::kWorker),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("name different tasks or clusters")));
  set(R"({"ps": ["other:1"], "worker": ["a:1", "b:1"]})", 1);
  EXPECT_FALSE(TaskConfigFromEnvironment(Role::kWorker).ok());
}

TEST_F(RoleFlagsTest, WhatIsWrongWithTheFlagsIsNamed) {
  unsetenv("TF_CONFIG");
  const struct {
    std::string file;
    std::string task;
    std::string want;
  } cases[] = {
      {"/no/such/file", "worker/0", "--cluster_spec=/no/such/file: can't be"},
      {testing::TempDir(), "worker/0", ": can't be read"},
      {"", "worker/0", "--task: needs --cluster_spec"},
      {FileWith(kCluster), "", "--cluster_spec: needs --task"},
      {FileWith(kCluster), "worker", "--task=worker: is not a role"},
      {FileWith(kCluster), "worker/-1", "--task=worker/-1: is not"},
      {FileWith(kCluster), "worker/1/2", "--task=worker/1/2: is not"},
      {FileWith(kCluster), "worker/2", "task.index: 2 is not in job"},
      {FileWith(kCluster), "ps/0", "this is the \"worker\" binary"},
  };
  for (const auto& test : cases) {
    absl::SetFlag(&FLAGS_cluster_spec, test.file);
    absl::SetFlag(&FLAGS_task, test.task);
    EXPECT_THAT(
        TaskConfigFromEnvironment(Role::kWorker),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.want)))
        << test.want;
  }
  absl::SetFlag(&FLAGS_task, "worker/0");
  for (const char* text : {"", "[]", "{", R"({"cluster": {}, "task": {}})",
                           R"({"gpu": ["a:1"]})", R"({"ps": ["a:1"]})"}) {
    absl::SetFlag(&FLAGS_cluster_spec, FileWith(text));
    EXPECT_THAT(TaskConfigFromEnvironment(Role::kWorker),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("--cluster_spec=")))
        << text;
  }
}

TEST_F(RoleFlagsTest, ABadConfigurationEndsTheProcessWith2) {
  setenv("TF_CONFIG", "{", /*overwrite=*/1);
  EXPECT_EXIT(TaskConfigOrExit(Role::kWorker), ExitedWithCode(2), "TF_CONFIG");
}

TEST_F(RoleFlagsTest, CheckConfigEndsTheProcessWith0) {
  unsetenv("TF_CONFIG");
  absl::SetFlag(&FLAGS_check_config, true);
  EXPECT_EXIT(TaskConfigOrExit(Role::kWorker), ExitedWithCode(0), "");
}

TEST_F(RoleFlagsTest, WithoutCheckConfigTheTaskIsReturned) {
  unsetenv("TF_CONFIG");
  EXPECT_TRUE(TaskConfigOrExit(Role::kWorker).is_chief);
}

}  // namespace
}  // namespace parasol

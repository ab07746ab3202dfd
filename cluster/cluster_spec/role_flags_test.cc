#include "cluster/cluster_spec/role_flags.h"

#include <cstdlib>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::ExitedWithCode;
using testing::HasSubstr;

class RoleFlagsTest : public testing::Test {
 protected:
  ~RoleFlagsTest() override { unsetenv("TF_CONFIG"); }

  absl::FlagSaver flags_;
};

TEST_F(RoleFlagsTest, TheStrategyIsParameterServerUnlessTheFlagSaysOtherwise) {
  setenv("TF_CONFIG",
         R"({"cluster": {"worker": ["a:1", "b:1"]},
             "task": {"type": "worker", "index": 0}})",
         /*overwrite=*/1);
  EXPECT_THAT(TaskConfigFromEnvironment(Role::kWorker),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("parameter_server")));
  absl::SetFlag(&FLAGS_strategy, StrategyKind::kMultiWorkerMirrored);
  EXPECT_OK(TaskConfigFromEnvironment(Role::kWorker));
}

TEST_F(RoleFlagsTest, StrategyIsReadAndWrittenByName) {
  for (const StrategyKind strategy :
       {StrategyKind::kParameterServer, StrategyKind::kMultiWorkerMirrored}) {
    StrategyKind read;
    std::string error;
    EXPECT_TRUE(AbslParseFlag(AbslUnparseFlag(strategy), &read, &error));
    EXPECT_EQ(read, strategy);
  }
  StrategyKind read;
  std::string error;
  EXPECT_FALSE(AbslParseFlag("mirrored", &read, &error));
  EXPECT_THAT(error, HasSubstr("multi_worker_mirrored"));
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

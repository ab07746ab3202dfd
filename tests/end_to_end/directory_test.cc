// A checkpoint directory that two jobs want, and one that can't be read for a
// while.

#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// A cluster that trains until it is told to end.
absl::StatusOr<std::unique_ptr<LaunchedCluster>> StartEndless(
    const std::string& checkpoint_dir = "") {
  return LaunchedCluster::Start(
      {.num_ps = 2,
       .num_workers = 1,
       .checkpoint_dir = checkpoint_dir,
       .overrides = {"end.steps=100000000", "checkpoint.every_steps=50"}});
}

TEST(DirectoryTest, ASecondLaunchEndsWithTwoAndNamesTheFirst) {
  ASSERT_OK_AND_ASSIGN(const auto first, StartEndless());
  ASSERT_OK(first->AwaitStep(100));
  const pid_t chief = first->Tasks().at("chief/0");
  ASSERT_OK_AND_ASSIGN(const auto second,
                       StartEndless(first->checkpoint_dir()));
  ASSERT_OK_AND_ASSIGN(const LaunchedCluster::Result refused, second->Wait());
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.json,
              AllOf(HasSubstr(first->checkpoint_dir()),
                    HasSubstr(absl::StrCat("process ", chief, " on "))));

  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, first->Status());
  ASSERT_OK(first->AwaitStep(status.global_step() + 100));
  first->SignalLauncher(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const LaunchedCluster::Result ended, first->Wait());
  EXPECT_EQ(ended.exit_code, 143);
}

TEST(DirectoryTest, AChiefWaitsForAManifestThatCantBeReadNow) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, StartEndless());
  ASSERT_OK(cluster->AwaitStep(200));
  // Until the chief is gone the newest checkpoint changes.
  ASSERT_OK(cluster->Signal("chief/0", SIGSTOP));
  const CheckpointStore store(cluster->checkpoint_dir());
  const int64_t newest = store.ListSteps()->back();
  const std::string manifest = store.PathOf(newest) + "/MANIFEST";
  const std::string kept = cluster->checkpoint_dir() + "/kept";
  fs::rename(manifest, kept);
  fs::create_symlink("/proc/self/mem", manifest);  // reading it is EIO
  ASSERT_OK(cluster->Signal("chief/0", SIGKILL));
  ASSERT_OK(WaitUntil("the chief names the manifest", [&] {
    const auto status = cluster->Status();
    return status.ok() && absl::StrContains(status->trouble(), manifest);
  }));
  fs::rename(kept, manifest);
  ASSERT_OK(WaitUntil("the job goes on from it", [&] {
    const auto status = cluster->Status();
    return status.ok() && status->phase() == wire::TRAINING &&
           status->global_step() >= newest && status->trouble().empty();
  }));
  cluster->SignalLauncher(SIGTERM);
  ASSERT_OK_AND_ASSIGN(const LaunchedCluster::Result ended, cluster->Wait());
  EXPECT_EQ(ended.exit_code, 143);
}

}  // namespace
}  // namespace parasol

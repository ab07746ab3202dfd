// A launched cluster whose checkpoints lie in an object store, beside one that
// has them in a folder.

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/object/testing/object_servers.h"
#include "ml/input/testing/arrow_environment.h"
#include "tests/end_to_end/launched_cluster.h"
#include "tool/testing/run_tool.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kSteps = 60;

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class ObjectCheckpointsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    server_ = StartObjectServer(GetParam(), "store");
    fs::remove_all(local_);
  }

  // Two workers in step, whose bits depend on the data alone.
  LaunchedCluster::Options Options(const std::string& directory) const {
    LaunchedCluster::Options options;
    options.checkpoint_dir = directory;
    options.overrides = {absl::StrCat("end.steps=", kSteps),
                         "checkpoint.every_steps=10",
                         "checkpoint.max_to_keep=2",
                         "parameter_server.synchronous.total_replicas=2"};
    options.flags = {"--data_cache_dir=" + local_};
    return options;
  }

  // Waits for the end, and returns all values that have come of it.
  std::string ValuesAtEnd(LaunchedCluster& cluster) const {
    const auto result = cluster.Wait();
    EXPECT_OK(result);
    EXPECT_EQ(result->exit_code, 0) << result->progress;
    EXPECT_THAT(result->json, HasSubstr("\"accuracy\""));
    const std::string file = testing::TempDir() + "/all.safetensors";
    fs::remove(file);
    const CompletedProcess exported =
        RunTool({"export", cluster.checkpoint_dir(), "--format=safetensors",
                 "--output=" + file});
    EXPECT_EQ(exported.end.code(), 0) << exported.standard_error;
    return Content(file);
  }

  std::string Trained(const std::string& directory) const {
    const auto cluster = LaunchedCluster::Start(Options(directory));
    EXPECT_OK(cluster);
    return ValuesAtEnd(**cluster);
  }

  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const auto& file :
         fs::recursive_directory_iterator(server_->PathOf("run"))) {
      if (!file.is_regular_file()) continue;
      keys.push_back(
          fs::relative(file.path(), server_->PathOf("run")).string());
    }
    return keys;
  }

  const std::string local_ = testing::TempDir() + "/on_their_way";
  std::unique_ptr<ObjectServer> server_;
};

TEST_P(ObjectCheckpointsTest, TrainsToTheBitsOfAFolder) {
  const std::string here = Trained("");
  ASSERT_FALSE(here.empty());
  server_->SetFaults(
      {server_->Fault("PUT /b/run/.*", "503", 4, /*skip=*/3),
       server_->Fault("PUT /b/run/.*sst", "lost", 1, /*skip=*/5),
       server_->Fault("PUT /b/run/.*MANIFEST", "lost", 1, /*skip=*/1)});
  EXPECT_TRUE(Trained(server_->Uri("run")) == here);

  const std::vector<std::string> keys = Keys();
  EXPECT_EQ(std::count_if(keys.begin(), keys.end(),
                          [](const std::string& key) {
                            return absl::EndsWith(key, "/MANIFEST");
                          }),
            2);
  EXPECT_THAT(keys, Contains(HasSubstr("tensorboard/train/events")));
  EXPECT_THAT(keys, Contains("training.jsonl"));
  const std::vector<std::string> lines =
      absl::StrSplit(Content(server_->PathOf("run/evaluations.jsonl")), '\n',
                     absl::SkipEmpty());
  EXPECT_THAT(lines, Not(testing::IsEmpty()));
  EXPECT_THAT(lines.back(),
              HasSubstr(absl::StrCat("\"global_step\":", kSteps)));
  // Nothing stays on the machine but what `export` has brought.
  for (const auto& entry : fs::directory_iterator(local_)) {
    EXPECT_THAT(entry.path().filename().string(),
                Not(HasSubstr("checkpoint-files")));
  }

  const CompletedProcess listed =
      RunTool({"checkpoint", "verify", server_->Uri("run")});
  EXPECT_EQ(listed.end.code(), 0) << listed.standard_error;
  EXPECT_THAT(listed.standard_output,
              AllOf(HasSubstr("\n  60 "), HasSubstr("final")));

  // What was not uploaded to its end is not brought.
  server_->Put("run/ckpt-000000000070/shard-0-ab.sst", "a part");
  const std::string file = testing::TempDir() + "/again.safetensors";
  const CompletedProcess exported =
      RunTool({"export", server_->Uri("run"), "--format=safetensors",
               "--output=" + file});
  EXPECT_EQ(exported.end.code(), 0) << exported.standard_error;
  EXPECT_TRUE(Content(file) == here);
  EXPECT_THAT(server_->Requests("GET /b/run/ckpt-000000000070/"),
              testing::IsEmpty());

  // Nobody waits for a directory that can't be imported into.
  const std::vector<std::string> before = Keys();
  const CompletedProcess imported =
      RunTool({"import", file, "--checkpoint_dir=" + server_->Uri("run")});
  EXPECT_EQ(imported.end.code(), 2);
  EXPECT_THAT(imported.standard_error, HasSubstr("name another directory"));
  EXPECT_EQ(Keys(), before);
}

TEST_P(ObjectCheckpointsTest, GoesOnToTheSameBitsWhenAllWereKilled) {
  if (GetParam() != "S3") GTEST_SKIP() << "waits for a lease of 30 s once";
  const std::string here = Trained("");
  {
    const auto cluster = LaunchedCluster::Start(Options(server_->Uri("run")));
    ASSERT_OK(cluster);
    ASSERT_OK((*cluster)->AwaitStep(25));
    const std::map<std::string, pid_t> tasks = (*cluster)->Tasks();
    (*cluster)->SignalLauncher(SIGKILL);
    for (const auto& [name, pid] : tasks) kill(pid, SIGKILL);
  }
  ASSERT_THAT(Keys(), Contains(HasSubstr("MANIFEST")));
  const auto cluster = LaunchedCluster::Start(Options(server_->Uri("run")));
  ASSERT_OK(cluster);
  EXPECT_TRUE(ValuesAtEnd(**cluster) == here);
  EXPECT_THAT((*cluster)->LogOf("chief/0"),
              AllOf(HasSubstr("waiting up to 30s for a sign of life"),
                    HasSubstr(server_->Name("run/ckpt-0000000000"))));
}

TEST_P(ObjectCheckpointsTest, AStoreThatRefusesIsToldAndTrainingGoesOn) {
  const auto cluster = LaunchedCluster::Start(Options(server_->Uri("run")));
  ASSERT_OK(cluster);
  ASSERT_OK((*cluster)->AwaitStep(1));
  server_->SetFaults({server_->Fault("PUT /b/run/ckpt-.*", "403", -1)});
  ASSERT_OK(WaitUntil("the chief says so", [&] {
    const auto status = (*cluster)->Status();
    return status.ok() &&
           absl::StrContains(status->trouble(), server_->Name("run/")) &&
           absl::StrContains(status->trouble(), server_->Credentials());
  }));
  server_->SetFaults({});
  const auto result = (*cluster)->Wait();
  ASSERT_OK(result);
  EXPECT_EQ(result->exit_code, 0) << result->progress;
}

TEST_P(ObjectCheckpointsTest, ABucketThatIsNotThereIsToldAtTheStart) {
  LaunchedCluster::Options options = Options(server_->Uri("run", "none"));
  const auto cluster = LaunchedCluster::Start(options);
  ASSERT_OK(cluster);
  const auto result = (*cluster)->Wait();
  ASSERT_OK(result);
  EXPECT_EQ(result->exit_code, 2) << result->progress;
  EXPECT_THAT(result->json, AllOf(HasSubstr(server_->Name("run", "none")),
                                  HasSubstr("no such object or bucket")));
}

INSTANTIATE_TEST_SUITE_P(Servers, ObjectCheckpointsTest, ObjectServerKinds(),
                         ObjectServerName);

}  // namespace
}  // namespace parasol

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
#include "ml/input/object/testing/s3_server.h"
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

class ObjectCheckpointsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    server_ = std::make_unique<S3Server>("s3");
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
  std::unique_ptr<S3Server> server_;
};

TEST_F(ObjectCheckpointsTest, TrainsToTheBitsOfAFolder) {
  const std::string here = Trained("");
  ASSERT_FALSE(here.empty());
  server_->SetFaults(
      {R"({"request": "PUT /b/run/.*", "times": 4, "skip": 3, "do": "503"})",
       R"({"request": "PUT /b/run/.*sst", "times": 1, "skip": 5, "do": "lost"})",
       R"({"request": "PUT /b/run/.*MANIFEST", "times": 1, "skip": 1, "do": "lost"})"});
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

TEST_F(ObjectCheckpointsTest, GoesOnToTheSameBitsWhenAllWereKilled) {
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
                    HasSubstr("s3://b/run/ckpt-0000000000")));
}

TEST_F(ObjectCheckpointsTest, AStoreThatRefusesIsToldAndTrainingGoesOn) {
  const auto cluster = LaunchedCluster::Start(Options(server_->Uri("run")));
  ASSERT_OK(cluster);
  ASSERT_OK((*cluster)->AwaitStep(1));
  server_->SetFaults(
      {R"({"request": "PUT /b/run/ckpt-.*", "times": -1, "do": "403"})"});
  ASSERT_OK(WaitUntil("the chief says so", [&] {
    const auto status = (*cluster)->Status();
    return status.ok() && absl::StrContains(status->trouble(), "s3://b/run/") &&
           absl::StrContains(status->trouble(), "AWS_ACCESS_KEY_ID");
  }));
  server_->SetFaults({});
  const auto result = (*cluster)->Wait();
  ASSERT_OK(result);
  EXPECT_EQ(result->exit_code, 0) << result->progress;
}

TEST_F(ObjectCheckpointsTest, ABucketThatIsNotThereIsToldAtTheStart) {
  LaunchedCluster::Options options =
      Options(absl::StrCat("s3://none/run?", server_->Options()));
  const auto cluster = LaunchedCluster::Start(options);
  ASSERT_OK(cluster);
  const auto result = (*cluster)->Wait();
  ASSERT_OK(result);
  EXPECT_EQ(result->exit_code, 2) << result->progress;
  EXPECT_THAT(result->json, AllOf(HasSubstr("s3://none/run"),
                                  HasSubstr("no such object or bucket")));
}

}  // namespace
}  // namespace parasol

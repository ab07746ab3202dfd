// A launched cluster whose checkpoints in an object store are increments,
// beside one that has them in a folder, and a server of predictions that
// follows.

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
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
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kSteps = 130;

// Rows of few users change between two checkpoints.
constexpr char kJob[] = R"(
  name: "ratings"
  seed: 1
  model {
    input {
      name: "pair"
      ids { column { name: "user" hash {} } column { name: "item" hash {} } }
    }
    layer { name: "rows" embedding_bag { table: "rows" } }
    layer { name: "rating" dense { units: 1 } }
    loss { mean_squared_error {} }
    sparse_table { name: "rows" width: 16 }
  }
  train { ratings { file: "ratings.dat" } batch_size: 8 }
  eval { ratings { file: "ratings.dat" } batch_size: 100 }
  optimizer { adagrad { learning_rate: 0.05 } }
  checkpoint { every_steps: 10 max_to_keep: 2 full_every: 6 }
  parameter_server { synchronous { total_replicas: 2 } }
)";

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class ObjectIncrementsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    server_ = std::make_unique<S3Server>("s3");
    fs::create_directories(data_);
    std::ofstream ratings(data_ + "/ratings.dat");
    for (int i = 0; i < 4000; ++i) {
      ratings << i * 37 % 2003 << "::" << i % 501 << "::" << i % 5 << "::0\n";
    }
  }

  LaunchedCluster::Options Options(const std::string& directory) const {
    LaunchedCluster::Options options;
    options.job = kJob;
    options.data_dir = data_;
    options.checkpoint_dir = directory;
    options.overrides = {absl::StrCat("end.steps=", kSteps)};
    options.flags = {"--data_cache_dir=" + local_};
    return options;
  }

  // Returns all values of the newest checkpoint.
  static std::string Exported(const std::string& directory) {
    const std::string file = testing::TempDir() + "/all.safetensors";
    fs::remove(file);
    const CompletedProcess exported = RunTool(
        {"export", directory, "--format=safetensors", "--output=" + file});
    EXPECT_EQ(exported.end.code(), 0) << exported.standard_error;
    return Content(file);
  }

  static void ExpectComplete(LaunchedCluster& cluster) {
    const auto result = cluster.Wait();
    ASSERT_OK(result);
    EXPECT_EQ(result->exit_code, 0) << result->progress;
  }

  // Starts `parasol serve` of the run, and has it log to a file.
  std::unique_ptr<Subprocess> Serve() const {
    SubprocessOptions options;
    options.argv = {absl::StrCat(getenv("TEST_SRCDIR"), "/",
                                 getenv("TEST_WORKSPACE"), "/tool/parasol"),
                    "serve",
                    server_->Uri("run"),
                    "--port=0",
                    "--host=127.0.0.1",
                    "--name=ratings",
                    "--device=cpu",
                    "--poll_interval=200ms"};
    options.standard_error = OutputTo::File(ServeLog());
    auto started = Subprocess::Start(options);
    EXPECT_OK(started);
    return *std::move(started);
  }
  static std::string ServeLog() { return testing::TempDir() + "/serve.log"; }

  // Returns the paths of the shard files of the run, below its folder.
  std::vector<std::string> Shards() const {
    std::vector<std::string> shards;
    const std::string root = server_->PathOf("run");
    for (const auto& file : fs::recursive_directory_iterator(root)) {
      if (file.path().extension() != ".sst") continue;
      shards.push_back(fs::relative(file.path(), root).string());
    }
    std::sort(shards.begin(), shards.end());
    return shards;
  }

  const std::string local_ = testing::TempDir() + "/on_their_way";
  const std::string data_ = testing::TempDir() + "/data";
  std::unique_ptr<S3Server> server_;
};

TEST_F(ObjectIncrementsTest, TrainsToTheBitsOfAFolderThroughKillsOfAll) {
  const auto in_folder = LaunchedCluster::Start(Options(""));
  ASSERT_OK(in_folder);
  ExpectComplete(**in_folder);
  const std::string here = Exported((*in_folder)->checkpoint_dir());
  ASSERT_FALSE(here.empty());

  server_->SetFaults(
      {R"({"request": "PUT /b/run/.*", "times": 4, "skip": 5, "do": "503"})",
       R"({"request": "PUT /b/run/.*sst", "times": 1, "skip": 7, "do": "lost"})",
       R"({"request": "PUT /b/run/.*MANIFEST", "times": 1, "skip": 3, "do": "lost"})",
       R"({"request": "DELETE /b/run/.*", "times": 2, "skip": 3, "do": "lost"})"});
  {
    const auto cluster = LaunchedCluster::Start(Options(server_->Uri("run")));
    ASSERT_OK(cluster);
    ASSERT_OK((*cluster)->AwaitStep(55));
    const std::map<std::string, pid_t> tasks = (*cluster)->Tasks();
    (*cluster)->SignalLauncher(SIGKILL);
    for (const auto& [name, pid] : tasks) kill(pid, SIGKILL);
  }
  server_->ForgetRequests();
  const auto served = Serve();
  const auto cluster = LaunchedCluster::Start(Options(server_->Uri("run")));
  ASSERT_OK(cluster);
  ExpectComplete(**cluster);
  EXPECT_TRUE(Exported(server_->Uri("run")) == here);

  // The server has what is the newest, and has brought no file twice.
  ASSERT_OK(WaitUntil("the last version", [] {
    return absl::StrContains(Content(ServeLog()),
                             absl::StrCat("serving version ", kSteps));
  }));
  EXPECT_THAT(Content(ServeLog()), Not(HasSubstr("can't be served")));

  const CompletedProcess listed =
      RunTool({"checkpoint", "verify", server_->Uri("run")});
  EXPECT_EQ(listed.end.code(), 0) << listed.standard_error;
  EXPECT_THAT(listed.standard_output,
              AllOf(HasSubstr(absl::StrCat("\n  ", kSteps, " ")),
                    HasSubstr("increment ")));
  for (const std::string command : {"ls", "show"}) {
    const CompletedProcess shown =
        RunTool({"checkpoint", command, server_->Uri("run")});
    EXPECT_EQ(shown.end.code(), 0) << shown.standard_error;
  }
  const CompletedProcess evaluated =
      RunTool({"evaluate", server_->Uri("run"), "--data_dir=" + data_});
  EXPECT_EQ(evaluated.end.code(), 0) << evaluated.standard_error;

  // A file of the chain that is gone is named, and an older chain is there.
  const CompletedProcess before =
      RunTool({"checkpoint", "verify", server_->Uri("run")});
  EXPECT_EQ(before.end.code(), 0);
  fs::remove(server_->PathOf("run/" + Shards().back()));
  const CompletedProcess damaged =
      RunTool({"checkpoint", "verify", server_->Uri("run")});
  EXPECT_EQ(damaged.end.code(), 1);
  EXPECT_THAT(damaged.standard_output, HasSubstr("is missing"));
  Exported(server_->Uri("run"));
}

TEST_F(ObjectIncrementsTest, APsAndAChiefThatAreKilledGoOnFromIncrements) {
  LaunchedCluster::Options options = Options(server_->Uri("run"));
  options.overrides = {"end.steps=400"};
  const auto cluster = LaunchedCluster::Start(options);
  ASSERT_OK(cluster);
  ASSERT_OK((*cluster)->AwaitStep(55));
  ASSERT_OK((*cluster)->Signal("ps/1", SIGKILL));
  ASSERT_OK((*cluster)->AwaitStep(120));
  ASSERT_OK((*cluster)->Signal("chief/0", SIGKILL));
  ExpectComplete(**cluster);
  EXPECT_THAT((*cluster)->LogOf("ps/1"), HasSubstr("s3://b/run/ckpt-00000000"));
  const CompletedProcess listed =
      RunTool({"checkpoint", "verify", server_->Uri("run")});
  EXPECT_EQ(listed.end.code(), 0) << listed.standard_error;

  // As many ps as there are workers may go on from it, with another number.
  options.num_ps = 3;
  options.overrides = {"end.steps=440"};
  const auto wider = LaunchedCluster::Start(options);
  ASSERT_OK(wider);
  ExpectComplete(**wider);
  const CompletedProcess again =
      RunTool({"checkpoint", "verify", server_->Uri("run")});
  EXPECT_EQ(again.end.code(), 0) << again.standard_error;
  EXPECT_THAT(again.standard_output, HasSubstr("\n  440 "));
}

}  // namespace
}  // namespace parasol

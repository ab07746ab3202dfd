// A launched cluster whose checkpoints in an object store are increments,
// beside one that has them in a folder, and a server of predictions that
// follows.

#include <signal.h>

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
#include "absl/strings/str_join.h"
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

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSteps = 300;

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

  // Runs the tool, which has nothing to complain of, and returns what it
  // prints.
  static std::string Told(const std::vector<std::string>& arguments) {
    const CompletedProcess run = RunTool(arguments);
    EXPECT_EQ(run.end.code(), 0) << absl::StrJoin(arguments, " ") << ": "
                                 << run.standard_output << run.standard_error;
    return run.standard_output;
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

  const std::string local_ = testing::TempDir() + "/on_their_way";
  const std::string data_ = testing::TempDir() + "/data";
  std::unique_ptr<S3Server> server_;
};

TEST_F(ObjectIncrementsTest, TrainsToTheBitsOfAFolderThroughKillsOfAll) {
  const auto in_folder = LaunchedCluster::Start(Options(""));
  ASSERT_OK(in_folder);
  ExpectComplete(**in_folder);

  server_->SetFaults(
      {R"({"request": "PUT /b/run/.*", "times": 4, "skip": 5, "do": "503"})",
       R"({"request": "PUT /b/run/.*sst", "times": 1, "skip": 7, "do": "lost"})",
       R"({"request": "PUT /b/run/.*MANIFEST", "times": 1, "skip": 3, "do": "lost"})",
       R"({"request": "DELETE /b/run/.*", "times": 2, "skip": 3, "do": "lost"})"});
  {
    const auto cluster = LaunchedCluster::Start(Options(server_->Uri("run")));
    ASSERT_OK(cluster);
    ASSERT_OK(WaitUntil("an increment", [this] {
      return absl::StrContains(Told({"checkpoint", "ls", server_->Uri("run")}),
                               "increment ");
    }));
    const std::map<std::string, pid_t> tasks = (*cluster)->Tasks();
    (*cluster)->SignalLauncher(SIGKILL);
    for (const auto& [name, pid] : tasks) kill(pid, SIGKILL);
  }
  const auto served = Serve();
  const auto cluster = LaunchedCluster::Start(Options(server_->Uri("run")));
  ASSERT_OK(cluster);
  ExpectComplete(**cluster);
  EXPECT_THAT(Told({"diff", (*in_folder)->checkpoint_dir(), server_->Uri("run"),
                    "--data_cache_dir=" + local_}),
              Not(HasSubstr("differ")));

  ASSERT_OK(WaitUntil("the last version", [] {
    return absl::StrContains(Content(ServeLog()),
                             absl::StrCat("serving version ", kSteps));
  }));
  EXPECT_THAT(Content(ServeLog()), Not(HasSubstr("can't be served")));
  EXPECT_THAT(Told({"checkpoint", "verify", server_->Uri("run")}),
              HasSubstr(absl::StrCat("\n  ", kSteps, " ")));
  EXPECT_THAT(Told({"checkpoint", "show", server_->Uri("run")}),
              HasSubstr("rows"));
  Told({"evaluate", server_->Uri("run"), "--data_dir=" + data_,
        "--data_cache_dir=" + local_});
}

TEST_F(ObjectIncrementsTest, TasksThatAreKilledAndAnotherNumberOfPsGoOn) {
  LaunchedCluster::Options options = Options(server_->Uri("run"));
  options.overrides = {"end.steps=400"};
  const auto cluster = LaunchedCluster::Start(options);
  ASSERT_OK(cluster);
  ASSERT_OK((*cluster)->AwaitStep(55));
  ASSERT_OK((*cluster)->Signal("ps/1", SIGKILL));
  ASSERT_OK((*cluster)->AwaitStep(120));
  ASSERT_OK((*cluster)->Signal("chief/0", SIGKILL));
  ExpectComplete(**cluster);
  Told({"checkpoint", "verify", server_->Uri("run")});

  options.num_ps = 3;
  options.overrides = {"end.steps=440"};
  const auto wider = LaunchedCluster::Start(options);
  ASSERT_OK(wider);
  ExpectComplete(**wider);
  EXPECT_THAT(Told({"checkpoint", "verify", server_->Uri("run")}),
              HasSubstr("\n  440 "));
}

}  // namespace
}  // namespace parasol

// A launched cluster whose data lie in an object store, beside one that has
// them as files.

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class ObjectDataTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    server_ = StartObjectServer(GetParam(), "store");
    fs::remove_all(copies_);
    for (const auto& file : fs::directory_iterator(DigitsDirectory())) {
      server_->Put(absl::StrCat("digits/", file.path().filename().string()),
                   Content(file.path()));
    }
  }

  // Two workers in step, whose bits depend on the data alone.
  LaunchedCluster::Options Options(const std::string& data_dir) const {
    LaunchedCluster::Options options;
    options.data_dir = data_dir;
    options.overrides = {"end.steps=60",
                         "parameter_server.synchronous.total_replicas=2"};
    options.flags = {"--data_cache_dir=" + copies_};
    return options;
  }

  // Trains, and returns all values that have come of it.
  std::string Trained(const std::string& data_dir) const {
    const auto cluster = LaunchedCluster::Start(Options(data_dir));
    EXPECT_OK(cluster);
    const auto result = (*cluster)->Wait();
    EXPECT_OK(result);
    EXPECT_EQ(result->exit_code, 0) << result->progress;
    EXPECT_THAT(result->json, HasSubstr("\"accuracy\""));
    const std::string file = (*cluster)->checkpoint_dir() + "/all.safetensors";
    const CompletedProcess exported =
        RunTool({"export", (*cluster)->checkpoint_dir(), "--format=safetensors",
                 "--output=" + file});
    EXPECT_EQ(exported.end.code(), 0) << exported.standard_error;
    return Content(file);
  }

  const std::string copies_ = testing::TempDir() + "/copies";
  std::unique_ptr<ObjectServer> server_;
};

TEST_P(ObjectDataTest, TrainsToTheBitsOfFiles) {
  const std::string here = Trained(DigitsDirectory());
  ASSERT_FALSE(here.empty());
  EXPECT_FALSE(fs::exists(copies_));
  EXPECT_TRUE(Trained(server_->Uri("digits")) == here);
  // Workers and evaluator share what was brought.
  size_t copies = 0;
  for (const auto& copy : fs::directory_iterator(copies_)) {
    EXPECT_EQ(copy.path().extension(), "");
    ++copies;
  }
  EXPECT_EQ(copies, 4);
}

TEST_P(ObjectDataTest, AFaultIsToldBeforeAnythingStarts) {
  const auto fault = [&](const std::string& data_dir) {
    const auto cluster = LaunchedCluster::Start(Options(data_dir));
    EXPECT_OK(cluster);
    const auto result = (*cluster)->Wait();
    EXPECT_OK(result);
    EXPECT_EQ(result->exit_code, 2) << result->progress;
    return result->progress;
  };
  EXPECT_THAT(
      fault(server_->Uri("digit")),
      AllOf(HasSubstr(server_->Name("digit/train-images-idx3-ubyte.gz")),
            HasSubstr("there is no such object")));
  EXPECT_THAT(fault("s4://b/digits"), HasSubstr("--data_dir: s4://"));
  server_->SetFaults({server_->Fault(".*/b.*", "403", -1)});
  EXPECT_THAT(
      fault(server_->Uri("digits")),
      AllOf(HasSubstr(server_->Name("digits/")), HasSubstr("credentials"),
            testing::Not(HasSubstr("secret-of-the-test"))));
}

TEST_P(ObjectDataTest, ModelsAreReadFromAStore) {
  const auto cluster = LaunchedCluster::Start(Options(DigitsDirectory()));
  ASSERT_OK(cluster);
  ASSERT_OK((*cluster)->Wait());
  const fs::path folder = (*cluster)->checkpoint_dir();
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    if (!file.is_regular_file()) continue;
    server_->Put("run/" + fs::relative(file.path(), folder).string(),
                 Content(file.path()));
  }
  const auto exported = [&](const std::string& checkpoint) {
    const std::string file = testing::TempDir() + "/exported.safetensors";
    const CompletedProcess run =
        RunTool({"export", checkpoint, "--format=safetensors",
                 "--output=" + file, "--data_cache_dir=" + copies_});
    EXPECT_EQ(run.end.code(), 0) << run.standard_error;
    return Content(file);
  };
  const std::string all = exported(folder);
  EXPECT_TRUE(exported(server_->Uri("run")) == all);
  EXPECT_TRUE(exported(server_->Uri("run/ckpt-000000000060")) == all);
  // A newer one that was copied in part is passed over.
  server_->Put("run/ckpt-000000000070/MANIFEST", "a part");
  EXPECT_TRUE(exported(server_->Uri("run")) == all);

  server_->Put("weights.safetensors", all);
  const std::string job = testing::TempDir() + "/job.textproto";
  std::ofstream(job) << DigitsJob();
  const std::string imported = testing::TempDir() + "/imported";
  const CompletedProcess import =
      RunTool({"import", server_->Uri("weights.safetensors"), "--job=" + job,
               "--checkpoint_dir=" + imported, "--data_cache_dir=" + copies_});
  EXPECT_EQ(import.end.code(), 0) << import.standard_error;

  LaunchedCluster::Options warm = Options(DigitsDirectory());
  warm.overrides.push_back("warm_start.checkpoint=" + server_->Uri("run"));
  const auto again = LaunchedCluster::Start(warm);
  ASSERT_OK(again);
  ASSERT_OK_AND_ASSIGN(const auto result, (*again)->Wait());
  EXPECT_EQ(result.exit_code, 0) << result.progress;
  EXPECT_THAT((*again)->LogOf("chief/0"), HasSubstr("ckpt-000000000060"));
}

TEST_P(ObjectDataTest, TheToolReadsObjects) {
  const std::string job = testing::TempDir() + "/job.textproto";
  std::ofstream(job) << DigitsJob();
  const CompletedProcess checked =
      RunTool({"check", job, "--data_dir=" + server_->Uri("digits"),
               "--data_cache_dir=" + copies_});
  EXPECT_EQ(checked.end.code(), 0) << checked.standard_error;
  EXPECT_THAT(checked.standard_output, HasSubstr("train: 4000 examples"));
  server_->ForgetRequests();
  const CompletedProcess again =
      RunTool({"check", job, "--data_dir=" + server_->Uri("digits"),
               "--data_cache_dir=" + copies_});
  EXPECT_EQ(again.standard_output, checked.standard_output);
  EXPECT_THAT(server_->Requests("GET /b/digits"), SizeIs(0));
}

INSTANTIATE_TEST_SUITE_P(Servers, ObjectDataTest, ObjectServerKinds(),
                         ObjectServerName);

}  // namespace
}  // namespace parasol

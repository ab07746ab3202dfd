// A launched cluster whose data come from a web server, beside one that has
// them as files.

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/web/testing/web_server.h"
#include "tests/end_to_end/launched_cluster.h"
#include "tool/testing/run_tool.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ContentOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// Lines whose label follows from their numbers.
std::string DrawnCsv(int first, int lines) {
  std::string csv = "a,b,clicked\n";
  for (int i = first; i < first + lines; ++i) {
    const int a = i * 7919 % 1000;
    const int b = i * 104729 % 1000;
    absl::StrAppend(&csv, a * .001, ",", b * .001, ",", a > b ? 1 : 0, "\n");
  }
  return csv;
}

constexpr char kJob[] = R"(
  name: "clicks"
  seed: 3
  model {
    input { name: "x" dense { shape: 2 column { name: "a" } column { name: "b" } } }
    layer { name: "out" input: "x" dense { units: 1 } }
    loss { binary_crossentropy {} }
  }
  train {
    csv { file: "day_1.csv.gz" file: "day_2.csv.gz" label { column: "clicked" } }
    batch_size: 20
  }
  eval { csv { file: "eval.csv" label { column: "clicked" } } batch_size: 100 }
  optimizer { adam { learning_rate: 0.05 } }
  parameter_server { synchronous { total_replicas: 2 } }
  end { steps: 60 }
)";

class WebDataTest : public testing::Test {
 protected:
  WebDataTest() : server_("clicks") {
    fs::remove_all(copies_);
    server_.Put("d/day_1.csv.gz", Gzip(DrawnCsv(0, 800)));
    server_.Put("d/day_2.csv.gz", Gzip(DrawnCsv(800, 400)));
    server_.Put("d/eval.csv", DrawnCsv(1200, 300));
  }

  LaunchedCluster::Options Options(const std::string& data_dir) const {
    LaunchedCluster::Options options;
    options.job = kJob;
    options.data_dir = data_dir;
    options.flags = {"--data_cache_dir=" + copies_};
    return options;
  }

  struct Trained {
    std::string json;    // the launcher's last line, with the losses
    std::string values;  // all that have come of it
  };
  Trained Train(const std::string& data_dir) const {
    const auto cluster = LaunchedCluster::Start(Options(data_dir));
    EXPECT_OK(cluster);
    const auto result = (*cluster)->Wait();
    EXPECT_OK(result);
    EXPECT_EQ(result->exit_code, 0) << result->progress;
    const std::string file = (*cluster)->checkpoint_dir() + "/all.safetensors";
    const CompletedProcess exported =
        RunTool({"export", (*cluster)->checkpoint_dir(), "--format=safetensors",
                 "--output=" + file});
    EXPECT_EQ(exported.end.code(), 0) << exported.standard_error;
    return {.json = result->json, .values = ContentOfFile(file)};
  }

  const std::string copies_ = testing::TempDir() + "/copies";
  const WebServer server_;
};

// Returns a line's figure: a text of `name` up to the next ','.
std::string FigureOf(const std::string& json, const std::string& name) {
  const size_t begin = json.find(name);
  if (begin == std::string::npos) return "none";
  return json.substr(begin, json.find_first_of(",}", begin) - begin);
}

TEST_F(WebDataTest, TrainsToTheBitsOfFilesAlsoIfTheServerFails) {
  const Trained here = Train(server_.PathOf("d"));
  ASSERT_FALSE(here.values.empty());
  EXPECT_FALSE(fs::exists(copies_));
  // One request in five fails.
  std::string of = R"({"do": "cut"}, {"do": "reset"}, {"do": "503"})";
  for (int i = 0; i < 11; ++i) absl::StrAppend(&of, R"(, {"do": ""})");
  server_.SetFaults({absl::StrCat(
      R"({"request": "GET .*csv.*", "times": -1, "do": "random", "seed": 1,)"
      R"( "of": [)",
      of, "]}")});
  const Trained there = Train(server_.Url("d"));
  EXPECT_TRUE(there.values == here.values);
  EXPECT_EQ(FigureOf(there.json, "\"loss\""), FigureOf(here.json, "\"loss\""));
  EXPECT_NE(FigureOf(there.json, "\"loss\""), "none") << there.json;
  // All processes share what was brought.
  size_t copies = 0;
  for (const auto& copy : fs::directory_iterator(copies_)) {
    EXPECT_EQ(copy.path().extension(), "");
    ++copies;
  }
  EXPECT_EQ(copies, 3);
}

TEST_F(WebDataTest, AFaultIsToldBeforeAnythingStarts) {
  const auto fault = [&](const std::string& data_dir) {
    const auto cluster = LaunchedCluster::Start(Options(data_dir));
    EXPECT_OK(cluster);
    const auto result = (*cluster)->Wait();
    EXPECT_OK(result);
    EXPECT_EQ(result->exit_code, 2) << result->progress;
    return result->progress;
  };
  EXPECT_THAT(fault(server_.Url("gone")),
              AllOf(HasSubstr(server_.Url("gone/day_1.csv.gz")),
                    HasSubstr("there is no such file")));
  EXPECT_THAT(fault("http://me:hidden@127.0.0.1/d"),
              AllOf(HasSubstr("--data_dir: http://…@…"),
                    HasSubstr("credentials"), Not(HasSubstr("hidden"))));
  EXPECT_THAT(fault("http://127.0.0.1/d?v=1"),
              HasSubstr("--data_dir: http://127.0.0.1/d?…: a folder has no"));
  server_.SetFaults({R"({"request": ".*", "times": -1, "do": "403"})"});
  EXPECT_THAT(fault(server_.Url("d")),
              AllOf(HasSubstr(server_.Url("d/")), HasSubstr("answers 403")));
}

TEST_F(WebDataTest, ModelsOfOtherProgramsAreReadButNoCheckpoints) {
  const auto cluster = LaunchedCluster::Start(Options(server_.PathOf("d")));
  ASSERT_OK(cluster);
  ASSERT_OK((*cluster)->Wait());
  const std::string file = testing::TempDir() + "/weights.safetensors";
  const CompletedProcess exported =
      RunTool({"export", (*cluster)->checkpoint_dir(), "--format=safetensors",
               "--output=" + file});
  ASSERT_EQ(exported.end.code(), 0) << exported.standard_error;
  const std::string url =
      server_.Put("weights.safetensors", ContentOfFile(file));
  const std::string job = testing::TempDir() + "/job.textproto";
  std::ofstream(job) << kJob;
  const CompletedProcess import =
      RunTool({"import", url, "--job=" + job, "--data_cache_dir=" + copies_,
               "--checkpoint_dir=" + testing::TempDir() + "/imported"});
  EXPECT_EQ(import.end.code(), 0) << import.standard_error;

  LaunchedCluster::Options warm = Options(server_.PathOf("d"));
  warm.overrides.push_back("warm_start.checkpoint=" + url);
  const auto again = LaunchedCluster::Start(warm);
  ASSERT_OK(again);
  ASSERT_OK_AND_ASSIGN(const auto result, (*again)->Wait());
  EXPECT_EQ(result.exit_code, 0) << result.progress;

  const CompletedProcess refused =
      RunTool({"export", server_.Url("run"), "--format=safetensors",
               "--output=" + file});
  EXPECT_NE(refused.end.code(), 0);
  EXPECT_THAT(refused.standard_error, HasSubstr("s3://bucket/key"));
}

}  // namespace
}  // namespace parasol

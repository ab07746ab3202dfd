// A job with patterns of columns, from the job file to answers: trained by a
// launched cluster twice, evaluated there, and served.

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/job.pb.h"
#include "serving/testing/http_client.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "tests/end_to_end/launched_cluster.h"
#include "tool/testing/run_tool.h"
#include "tool/testing/serve_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class ColumnPatternsTest : public ServeFixture {
 protected:
  // Trains on a cluster until `steps` steps are done, from the checkpoints that
  // are there. Returns the evaluation of the last checkpoint.
  nlohmann::json TrainOnCluster(int steps) {
    std::ifstream job(Path("job.textproto"));
    LaunchedCluster::Options options;
    options.job = std::string(std::istreambuf_iterator<char>(job), {});
    options.data_dir = Path("");
    options.checkpoint_dir = Path("ckpt");
    options.overrides = {absl::StrCat("end.steps=", steps)};
    const auto cluster = LaunchedCluster::Start(options);
    EXPECT_OK(cluster);
    const auto result = (*cluster)->Wait();
    EXPECT_OK(result);
    EXPECT_EQ(result->exit_code, 0) << result->progress;
    return nlohmann::json::parse(result->json, nullptr, false)["eval"];
  }

  std::vector<float> Predicted() {
    const CompletedProcess run =
        RunTool({"predict", Path("ckpt"), "--data_dir=" + Path(""),
                 "--device=cpu", "--output=" + Path("p.csv")});
    EXPECT_EQ(run.end.code(), 0) << run.standard_error;
    std::ifstream csv(Path("p.csv"));
    std::string header;
    std::getline(csv, header);
    EXPECT_EQ(header, "prediction");
    std::vector<float> outputs;
    for (float output; csv >> output;) outputs.push_back(output);
    return outputs;
  }
};

TEST_F(ColumnPatternsTest, AClustersCheckpointIsServedByTheColumnsNames) {
  WriteJobOfPatterns();
  TrainOnCluster(60);
  // A restart reads the job file again.
  const nlohmann::json evaluated = TrainOnCluster(120);
  const CheckpointStore store(Path("ckpt"));
  ASSERT_OK_AND_ASSIGN(const auto checkpoint,
                       CheckpointReader::Open(store.PathOf(120)));
  const job::Model& model = checkpoint->manifest().job().model();
  std::vector<std::string> numbers;
  for (const auto& column : model.input(0).dense().column()) {
    numbers.push_back(column.name());
  }
  EXPECT_THAT(numbers, ElementsAre("x2", "x1"));
  ASSERT_EQ(model.input(1).ids().column_size(), 2);
  EXPECT_THAT(model.input(1).ids().column(1).name(), ElementsAre("c2"));

  const CompletedProcess again =
      RunTool({"evaluate", Path("ckpt"), "--data_dir=" + Path(""),
               "--device=cpu", "--json"});
  ASSERT_EQ(again.end.code(), 0) << again.standard_error;
  EXPECT_NEAR(
      nlohmann::json::parse(again.standard_output)["loss"].get<double>(),
      evaluated["loss"].get<double>(), 1e-5);

  const std::vector<float> predicted = Predicted();
  ASSERT_THAT(predicted, SizeIs(kExamples));
  Start();
  AwaitLog("serving version 120");
  HttpClient client(port_);
  const HttpAnswer answer = client.Post(kPredict, RowsOfPatterns(kExamples));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto served = nlohmann::json::parse(answer.body)["predictions"];
  ASSERT_THAT(served, SizeIs(kExamples));
  for (int i = 0; i < kExamples; ++i) {
    EXPECT_NEAR(served[i][0].get<float>(), predicted[i], 1e-5) << i;
  }
  EXPECT_EQ(Terminate(), 0);
}

}  // namespace
}  // namespace parasol

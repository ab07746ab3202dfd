// Online training from a topic of Kafka by real processes: records come while
// tasks are killed, and the job is told to stop and started again.

#include <signal.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/testing/tf_example_writer.h"
#include "ml/input/topic/testing/mock_kafka.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kTopicBatch = 16;
constexpr int kTopicPartitions = 3;

// A row counts how often its example was trained.
constexpr char kTopicJob[] = R"(
  name: "clicks"
  seed: 3
  model {
    input {
      name: "ids"
      ids { column { name: "number" identity { num_ids: 1000000 } } }
    }
    sparse_table { name: "seen" width: 1 initializer { zeros {} } }
    layer { input: "ids" embedding_bag { table: "seen" } }
    loss { mean_absolute_error {} }
  }
  train {
    tfrecord { file: "TOPIC" label: "label" }
    follow: true
    batch_size: 16
  }
  optimizer { sgd { learning_rate: 16 } }
  checkpoint { every_steps: 100 }
  end { never {} }
)";

class TopicClicksTest : public testing::Test {
 protected:
  TopicClicksTest()
      : root_(fs::path(testing::TempDir()) / "topic" /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    kafka_.Create("clicks", kTopicPartitions);
  }

  void Start() {
    LaunchedCluster::Options options;
    options.job =
        absl::StrReplaceAll(kTopicJob, {{"TOPIC", kafka_.Uri("clicks")}});
    options.data_dir = root_.string();
    options.checkpoint_dir = (root_ / "ckpt").string();
    ASSERT_OK_AND_ASSIGN(cluster_, LaunchedCluster::Start(options));
  }
  void Write(int batches) {
    for (int i = 0; i < kTopicBatch * batches; ++i, ++records_) {
      kafka_.Add("clicks", static_cast<int>(records_ % kTopicPartitions),
                 ExampleOf(IntegerFeature("number", {records_}) +
                           RealFeature("label", {100000000})));
    }
    kafka_.Flush();
  }
  void AwaitAll() {
    ASSERT_OK(WaitUntil("all records", [this] {
      const auto status = cluster_->Status();
      return status.ok() && status->followed().has_waited() &&
             status->followed().files() > 0 &&
             status->global_step() >= records_ / kTopicBatch;
    }));
  }
  void Kill(const std::string& task) {
    const pid_t before = cluster_->Tasks().at(task);
    ASSERT_OK(cluster_->Signal(task, SIGKILL));
    ASSERT_OK(WaitUntil("a new " + task, [&] {
      const auto now = cluster_->Tasks();
      return now.count(task) > 0 && now.at(task) != before;
    }));
  }
  // Tells the launcher to stop. A checkpoint has all that was trained.
  void Stop() {
    cluster_->SignalLauncher(SIGTERM);
    ASSERT_OK(cluster_->Wait().status());
    cluster_.reset();
  }
  // Returns the number of examples by how often they were trained.
  std::map<int, int> Counts() {
    std::map<int, int> counts;
    CheckpointStore store((root_ / "ckpt").string());
    const auto reader =
        CheckpointReader::Open(store.PathOf(store.ListSteps()->back()));
    EXPECT_OK(reader);
    int64_t rows = 0;
    EXPECT_OK((*reader)->ReadRows("seen", [&](const RowBatch& batch) {
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        ++counts[static_cast<int>(batch.rows[i])];
        ++rows;
      }
      return absl::OkStatus();
    }));
    if (rows < records_) counts[0] = static_cast<int>(records_ - rows);
    return counts;
  }
  std::map<int, int> Once() { return {{1, static_cast<int>(records_)}}; }

  const fs::path root_;
  MockKafka kafka_;
  int64_t records_ = 0;
  std::unique_ptr<LaunchedCluster> cluster_;
};

TEST_F(TopicClicksTest, AChiefThatIsKilledAndAStopCostNoRecord) {
  Write(200);
  Start();
  ASSERT_OK(cluster_->AwaitStep(50));
  Kill("chief/0");
  Write(300);
  ASSERT_OK(cluster_->AwaitStep(250));
  Stop();
  Write(100);
  Start();
  Write(30);
  AwaitAll();
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, cluster_->Status());
  EXPECT_THAT(status.followed().pattern(), HasSubstr("kafka://127.0.0.1:"));
  EXPECT_THAT(status.followed().newest(), HasSubstr("clicks/0000"));
  Stop();
  EXPECT_EQ(Counts(), Once());
}

TEST_F(TopicClicksTest, AWorkerThatIsKilledLeavesNoRecordOut) {
  Start();
  Write(600);
  ASSERT_OK(cluster_->AwaitStep(150));
  Kill("worker/1");
  Write(100);
  AwaitAll();
  Stop();
  const std::map<int, int> counts = Counts();
  EXPECT_EQ(counts.count(0), 0) << "a record was left out";
  // It reports what it has done ten times in a second: as much is done twice.
  for (const auto& [times, records] : counts) EXPECT_LE(times, 2);
}

}  // namespace
}  // namespace parasol

// Online training by real processes: files come while tasks are killed, and
// the job is told to stop and started again.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr int kBatch = 16;

// A row counts how often its example was trained.
constexpr char kJob[] = R"(
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
    csv { file: "clicks/*.csv" label { column: "label" } }
    follow: true
    batch_size: 16
  }
  optimizer { sgd { learning_rate: 16 } }
  checkpoint { every_steps: 100 }
  end { never {} }
)";

class FollowedClicksTest : public testing::Test {
 protected:
  FollowedClicksTest()
      : root_(fs::path(testing::TempDir()) / "followed" /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "clicks");
  }

  void Start() {
    LaunchedCluster::Options options;
    options.job = kJob;
    options.data_dir = root_.string();
    options.checkpoint_dir = (root_ / "ckpt").string();
    ASSERT_OK_AND_ASSIGN(cluster_, LaunchedCluster::Start(options));
  }
  void AddFiles(int count, int batches) {
    for (; count > 0; --count) {
      const std::string name = absl::StrFormat("%06d.csv", files_++);
      {
        std::ofstream out(root_ / name);
        out << "number,label\n";
        for (int i = 0; i < kBatch * batches; ++i) {
          out << records_++ << ",100000000\n";
        }
      }
      fs::rename(root_ / name, root_ / "clicks" / name);
    }
  }
  void AwaitAll() {
    ASSERT_OK(WaitUntil("all records", [this] {
      const auto status = cluster_->Status();
      return status.ok() && status->followed().has_waited() &&
             status->followed().files() > 0 &&
             status->global_step() >= records_ / kBatch;
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

  const fs::path root_;
  int files_ = 0;
  int64_t records_ = 0;
  std::unique_ptr<LaunchedCluster> cluster_;
};

TEST_F(FollowedClicksTest, AChiefThatIsKilledCostsNoRecord) {
  Start();
  AddFiles(4, 100);
  ASSERT_OK(cluster_->AwaitStep(150));
  Kill("chief/0");
  AddFiles(4, 50);
  AwaitAll();
  Stop();
  const std::map<int, int> once = {{1, static_cast<int>(records_)}};
  EXPECT_EQ(Counts(), once);
}

TEST_F(FollowedClicksTest, AWorkerThatIsKilledLeavesNoRecordOut) {
  Start();
  AddFiles(4, 200);
  ASSERT_OK(cluster_->AwaitStep(150));
  Kill("worker/1");
  AddFiles(2, 50);
  AwaitAll();
  Stop();
  const std::map<int, int> counts = Counts();
  EXPECT_EQ(counts.count(0), 0) << "a record was left out";
  // It reports what it has done ten times in a second: as much is done twice.
  for (const auto& [times, records] : counts) EXPECT_LE(times, 2);
}

TEST_F(FollowedClicksTest, AJobThatIsStoppedGoesOnWithTheNextRecord) {
  Start();
  AddFiles(6, 100);
  ASSERT_OK(cluster_->AwaitStep(150));
  Stop();
  AddFiles(1, 30);
  Start();
  AddFiles(1, 30);
  AwaitAll();
  Stop();
  const std::map<int, int> once = {{1, static_cast<int>(records_)}};
  EXPECT_EQ(Counts(), once);
}

}  // namespace
}  // namespace parasol

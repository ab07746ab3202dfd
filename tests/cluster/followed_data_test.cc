// Online training: a cluster whose training set grows. Each record is trained
// once, whoever leaves and comes back in good order; more than once only where
// a task is lost.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kBatch = 4;

// The label is far away: the gradient of an absolute error is its sign alone,
// and a row counts how often its example was trained. Files have whole batches.
job::Job CountingJob() {
  absl::StatusOr<job::Job> job = ParseJob(R"(
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
        batch_size: 4
      }
      optimizer { sgd { learning_rate: 4 } }
      checkpoint { every_steps: 20 }
      end { never {} }
  )",
                                          "clicks.textproto");
  EXPECT_OK(job);
  FillDefaults(*job);
  return *std::move(job);
}

class FollowedDataTest : public ClusterRunsTest {
 protected:
  FollowedDataTest()
      : data_(fs::path(getenv("TEST_TMPDIR")) / "data" /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(data_);
    fs::remove_all(Directory("run"));
    fs::create_directories(data_ / "clicks");
  }

  void MakeCluster(int workers, const std::string& run = "run") {
    cluster_ = std::make_unique<TestCluster>(job_, /*num_ps=*/2, workers,
                                             Directory(run).string());
    cluster_->SetDataDirectory(data_.string());
  }
  void StartAll(int workers) {
    ASSERT_OK(cluster_->StartChief());
    for (int ps = 0; ps < 2; ++ps) ASSERT_OK(cluster_->StartPs(ps));
    for (int i = 0; i < workers; ++i) ASSERT_OK(cluster_->StartWorker(i));
  }
  // Tells all tasks to end, the chief last.
  void StopAll(int workers) {
    EXPECT_THAT(cluster_->StopChief(), StatusIs(absl::StatusCode::kCancelled));
    for (int i = 0; i < workers; ++i) {
      cluster_->StopWorker(i).IgnoreError();
    }
    for (int ps = 0; ps < 2; ++ps) cluster_->StopPs(ps).IgnoreError();
  }

  // Moves a file of `batches` batches in, whose records go on from the file
  // before it.
  void AddFile(int batches) {
    const std::string name = absl::StrFormat("%06d.csv", files_++);
    {
      std::ofstream out(data_ / name);
      out << "number,label\n";
      for (int i = 0; i < kBatch * batches; ++i) {
        out << records_++ << ",100000000\n";
      }
    }
    fs::rename(data_ / name, data_ / "clicks" / name);
  }
  // Blocks until all records are trained and the job says so.
  void AwaitAll() {
    const int64_t steps = records_ / kBatch;
    EXPECT_OK(cluster_->AwaitStatus(absl::StrCat("step ", steps),
                                    [&](const wire::JobStatus& status) {
                                      return status.global_step() >= steps &&
                                             status.followed().has_waited();
                                    }));
  }
  // Returns how many examples were trained so many times; 1: of ids that lack.
  std::map<int, int> Counts(const std::string& run = "run") {
    std::map<int, int> counts;
    const auto checkpoint = Newest(run);
    int rows = 0;
    EXPECT_OK(checkpoint->ReadRows("seen", [&](const RowBatch& batch) {
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        ++rows;
        EXPECT_LT(batch.ids[i], records_);
        ++counts[static_cast<int>(batch.rows[i])];
      }
      return absl::OkStatus();
    }));
    if (rows < static_cast<int>(records_)) counts[0] = records_ - rows;
    return counts;
  }
  std::map<int, int> Once() { return {{1, static_cast<int>(records_)}}; }

  job::Job job_ = CountingJob();
  const fs::path data_;
  int files_ = 0;
  uint64_t records_ = 0;
  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(FollowedDataTest, FilesAreTrainedAsTheyComeEachRecordOnce) {
  MakeCluster(2);
  StartAll(2);
  ASSERT_OK(cluster_->AwaitStatus("waits", [](const wire::JobStatus& status) {
    return status.followed().has_waited();
  }));
  for (int i = 0; i < 5; ++i) AddFile(1 + 7 * i);
  AwaitAll();
  AddFile(1);
  AddFile(30);
  AwaitAll();
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, cluster_->Status());
  EXPECT_EQ(status.followed().files(), 7);
  EXPECT_EQ(status.followed().newest(), "clicks/000006.csv");
  EXPECT_EQ(status.followed().waiting_records(), 0);
  EXPECT_EQ(status.end_step(), 0);
  EXPECT_EQ(status.awaited_task_size(), 0);
  // The chief's metrics follow once a second.
  EXPECT_OK(cluster_->AwaitStatus("metrics", [&](const wire::JobStatus&) {
    return absl::StrContains(cluster_->metrics().Text(),
                             "parasol_chief_data_files_total 7");
  }));
  StopAll(2);
  EXPECT_EQ(Counts(), Once());
  EXPECT_EQ(Newest("run")->manifest().global_step(), records_ / kBatch);
}

TEST_F(FollowedDataTest, AJobThatIsResumedGoesOnWithTheNextRecord) {
  MakeCluster(3);
  StartAll(2);
  for (int i = 0; i < 3; ++i) AddFile(40);
  ASSERT_OK(cluster_->AwaitStep(50));
  StopAll(2);
  // Files that are trained may go; those that are not are found again.
  fs::remove(data_ / "clicks" / "000000.csv");
  AddFile(20);
  StartAll(3);
  AddFile(5);
  AwaitAll();
  StopAll(3);
  EXPECT_EQ(Counts(), Once());
}

TEST_F(FollowedDataTest, AFileTakenBehindTheCheckpointKeepsItsSizeOfBatches) {
  MakeCluster(1);
  StartAll(1);
  AddFile(5);
  AwaitAll();
  StopAll(1);
  // As a chief leaves it that is killed after it took a file.
  const fs::path log = fs::path(Directory("run")) / "followed.jsonl";
  std::string line;
  ASSERT_TRUE(std::getline(std::ifstream(log), line));
  std::ofstream(log, std::ios::app)
      << absl::StrReplaceAll(line, {{"000000.csv", "000001.csv"},
                                    {"\"first_batch\":0", "\"first_batch\":5"}})
      << "\n";
  job_.mutable_train()->set_batch_size(2 * kBatch);
  MakeCluster(1);
  EXPECT_THAT(cluster_->StartChief(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("train.batch_size is 8"),
                             HasSubstr("clicks/000001.csv"))));
}

TEST_F(FollowedDataTest, TasksThatStopAndComeBackCostNoRecord) {
  MakeCluster(3);
  StartAll(3);
  AddFile(200);
  ASSERT_OK(cluster_->AwaitStep(20));
  cluster_->StopWorker(1).IgnoreError();
  AddFile(50);
  EXPECT_THAT(cluster_->StopChief(), StatusIs(absl::StatusCode::kCancelled));
  AddFile(50);
  ASSERT_OK(cluster_->StartChief());
  ASSERT_OK(cluster_->StartWorker(1));
  AddFile(50);
  AwaitAll();
  StopAll(3);
  EXPECT_EQ(Counts(), Once());
}

TEST_F(FollowedDataTest, BoundedStalenessFollowsToo) {
  job_.mutable_parameter_server()->mutable_bounded_staleness()->set_bound(2);
  MakeCluster(2);
  StartAll(2);
  AddFile(3);
  AwaitAll();
  for (int i = 0; i < 3; ++i) AddFile(25);
  AwaitAll();
  StopAll(2);
  EXPECT_EQ(Counts(), Once());
}

TEST_F(FollowedDataTest, AnEndInStepsEndsTheJob) {
  job_.mutable_end()->Clear();
  job_.mutable_end()->set_steps(30);
  MakeCluster(2);
  StartAll(2);
  AddFile(20);
  AwaitAll();
  AddFile(20);
  EXPECT_OK(cluster_->WaitForChief());
  EXPECT_EQ(Newest("run")->manifest().global_step(), 30);
}

TEST_F(FollowedDataTest, AFileThatGoesAfterItWasTakenFailsTheJobByName) {
  MakeCluster(1);
  ASSERT_OK(cluster_->StartChief());
  for (int ps = 0; ps < 2; ++ps) ASSERT_OK(cluster_->StartPs(ps));
  AddFile(20);
  ASSERT_OK(cluster_->AwaitStatus("taken", [](const wire::JobStatus& status) {
    return status.followed().files() == 1;
  }));
  fs::remove(data_ / "clicks" / "000000.csv");
  ASSERT_OK(cluster_->StartWorker(0));
  EXPECT_THAT(cluster_->WaitForChief().message(), HasSubstr("000000.csv"));
}

TEST_F(FollowedDataTest, SuchAFileIsPassedOverIfCorruptRecordsAre) {
  job_.mutable_train()->set_on_corrupt(job::Dataset::SKIP);
  MakeCluster(1);
  ASSERT_OK(cluster_->StartChief());
  for (int ps = 0; ps < 2; ++ps) ASSERT_OK(cluster_->StartPs(ps));
  AddFile(20);
  AddFile(5);
  ASSERT_OK(cluster_->AwaitStatus("taken", [](const wire::JobStatus& status) {
    return status.followed().files() == 2;
  }));
  fs::remove(data_ / "clicks" / "000000.csv");
  ASSERT_OK(cluster_->StartWorker(0));
  AwaitAll();
  StopAll(1);
  const std::map<int, int> counts = {{0, 20 * kBatch}, {1, 5 * kBatch}};
  EXPECT_EQ(Counts(), counts);
}

}  // namespace
}  // namespace parasol

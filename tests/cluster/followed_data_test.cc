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
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/followed_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FollowedDataTest : public FollowedRunsTest {
 protected:
  FollowedDataTest()
      : data_(fs::path(getenv("TEST_TMPDIR")) / "data" /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(data_);
    fs::remove_all(Directory("run"));
    fs::create_directories(data_ / "clicks");
    job_ = CountingJobOf(
        R"(csv { file: "clicks/*.csv" label { column: "label" } })");
  }

  void MakeCluster(int workers, const std::string& run = "run") {
    cluster_ = std::make_unique<TestCluster>(job_, /*num_ps=*/2, workers,
                                             Directory(run).string());
    cluster_->SetDataDirectory(data_.string());
  }
  // Moves a file of `batches` batches in, whose records go on from the file
  // before it.
  void AddFile(int batches) {
    const std::string name = absl::StrFormat("%06d.csv", files_++);
    {
      std::ofstream out(data_ / name);
      out << "number,label\n";
      for (int i = 0; i < kBatch * batches; ++i) {
        out << records_++ << "," << kCountedLabel << "\n";
      }
    }
    fs::rename(data_ / name, data_ / "clicks" / name);
  }
  const fs::path data_;
  int files_ = 0;
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

// Online training from a topic of Kafka: a cluster whose training set is one.

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/topic/testing/mock_kafka.h"
#include "ml/input/topic/topic_slice.h"
#include "tests/cluster/followed_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kTopicPartitions = 3;
constexpr int kEmptyLines = 16 * kTopicPartitions;

// Returns the number of offsets up to where a slice ends; 0: it is none.
int64_t Ends(const std::string& name) {
  const absl::StatusOr<TopicSlice> slice = ParseSlice(name, "clicks");
  if (!slice.ok()) return 0;
  int64_t sum = 0;
  for (const OffsetRange& range : slice->ranges) sum += range.end;
  return sum;
}

class FollowedTopicTest : public FollowedRunsTest {
 protected:
  FollowedTopicTest() {
    fs::remove_all(Directory("run"));
    kafka_.Create("clicks", kTopicPartitions);
    job_ = CountingJobOf(absl::StrCat(
        "csv { file: \"", kafka_.Uri("clicks"),
        R"(" column: ["number", "label"] label { column: "label" } }
           shuffle_buffer: 100)"));
  }

  void MakeCluster(int workers) {
    cluster_ = std::make_unique<TestCluster>(job_, /*num_ps=*/2, workers,
                                             Directory("run").string());
    // Nothing is read there.
    cluster_->SetDataDirectory("/none");
  }
  void Write(int batches) {
    for (int i = 0; i < kBatch * batches; ++i, ++records_) {
      kafka_.Add("clicks", static_cast<int>(records_ % kTopicPartitions),
                 absl::StrCat(records_, ",", kCountedLabel));
    }
    kafka_.Flush();
  }
  // Has the brokers delete what was written so far. What they have instead are
  // empty lines, which are no records.
  void Overwrite() {
    const std::string large(500'000, ' ');
    for (int i = 0; i < kEmptyLines; ++i) {
      kafka_.Add("clicks", i % kTopicPartitions, large);
    }
    kafka_.Flush();
  }
  void AwaitTaken() {
    ASSERT_OK(cluster_->AwaitStatus("taken", [](const wire::JobStatus& status) {
      return status.followed().files() > 0;
    }));
  }

  MockKafka kafka_;
};

TEST_F(FollowedTopicTest, RecordsAreTrainedAsTheyComeEachOnce) {
  MakeCluster(2);
  StartAll(2);
  ASSERT_OK(cluster_->AwaitStatus("waits", [](const wire::JobStatus& status) {
    return status.followed().has_waited();
  }));
  for (int i = 0; i < 5; ++i) Write(1 + 7 * i);
  AwaitAll();
  Write(1);
  Write(50);
  AwaitAll();
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, cluster_->Status());
  EXPECT_EQ(status.followed().pattern(), kafka_.Uri("clicks"));
  EXPECT_EQ(status.followed().waiting_records(), 0);
  EXPECT_EQ(status.awaited_task_size(), 0);
  StopAll(2);
  EXPECT_EQ(Counts(), Once());
}

TEST_F(FollowedTopicTest, AJobThatIsResumedGoesOnWithTheNextRecord) {
  MakeCluster(3);
  Write(120);
  StartAll(2);
  ASSERT_OK(cluster_->AwaitStep(50));
  StopAll(2);
  Write(20);
  // Other brokers of the same cluster.
  job_.mutable_train()->mutable_csv()->set_file(
      0, absl::StrCat(
             kafka_.Uri("clicks").substr(0, kafka_.Uri("clicks").rfind('/')),
             ",127.0.0.1:1/clicks"));
  cluster_->SetJob(job_);
  StartAll(3);
  Write(5);
  AwaitAll();
  StopAll(3);
  EXPECT_EQ(Counts(), Once());
}

TEST_F(FollowedTopicTest, TasksThatStopAndComeBackCostNoRecord) {
  MakeCluster(3);
  StartAll(3);
  Write(200);
  ASSERT_OK(cluster_->AwaitStep(20));
  cluster_->StopWorker(1).IgnoreError();
  Write(50);
  EXPECT_THAT(cluster_->StopChief(), StatusIs(absl::StatusCode::kCancelled));
  Write(50);
  ASSERT_OK(cluster_->StartChief());
  ASSERT_OK(cluster_->StartWorker(1));
  Write(50);
  AwaitAll();
  StopAll(3);
  EXPECT_EQ(Counts(), Once());
}

TEST_F(FollowedTopicTest, RecordsDeletedAfterTheyWereTakenFailTheJobByName) {
  MakeCluster(1);
  Write(20);
  ASSERT_OK(cluster_->StartChief());
  for (int ps = 0; ps < 2; ++ps) ASSERT_OK(cluster_->StartPs(ps));
  AwaitTaken();
  Overwrite();
  ASSERT_OK(cluster_->StartWorker(0));
  EXPECT_THAT(cluster_->WaitForChief().message(),
              AllOf(HasSubstr(kafka_.Uri("clicks") + " partition "),
                    HasSubstr("deleted")));
}

TEST_F(FollowedTopicTest, OrArePassedOverIfCorruptRecordsAre) {
  job_.mutable_train()->set_on_corrupt(job::Dataset::SKIP);
  MakeCluster(1);
  Write(20);
  ASSERT_OK(cluster_->StartChief());
  for (int ps = 0; ps < 2; ++ps) ASSERT_OK(cluster_->StartPs(ps));
  AwaitTaken();
  Overwrite();
  Write(5);
  ASSERT_OK(cluster_->StartWorker(0));
  ASSERT_OK(cluster_->AwaitStatus("all", [&](const wire::JobStatus& status) {
    return Ends(status.followed().newest()) ==
               (20 + 5) * kBatch + kEmptyLines &&
           status.followed().has_waited() &&
           status.followed().waiting_records() == 0;
  }));
  StopAll(1);
  // Slices that have empty lines have batches that are not whole, whose records
  // count for more.
  EXPECT_EQ(Counts().at(0), 20 * kBatch);
}

}  // namespace
}  // namespace parasol

#include "tests/end_to_end/followed_job.h"

#include <signal.h>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"

namespace parasol {

namespace fs = std::filesystem;

FollowedJobTest::FollowedJobTest()
    : root_(fs::path(testing::TempDir()) / "followed" /
            testing::UnitTest::GetInstance()->current_test_info()->name()) {
  fs::remove_all(root_);
  fs::create_directories(root_);
}

void FollowedJobTest::StartWith(const std::string& train) {
  LaunchedCluster::Options options;
  options.job = CountingJob(train, kBatch, /*checkpoint_every=*/100);
  options.data_dir = root_.string();
  options.checkpoint_dir = (root_ / "ckpt").string();
  ASSERT_OK_AND_ASSIGN(cluster_, LaunchedCluster::Start(options));
}

void FollowedJobTest::AwaitAll() {
  ASSERT_OK(WaitUntil("all records", [this] {
    const auto status = cluster_->Status();
    return status.ok() && status->followed().has_waited() &&
           status->followed().files() > 0 &&
           status->global_step() >= records_ / kBatch;
  }));
}

void FollowedJobTest::Kill(const std::string& task) {
  const pid_t before = cluster_->Tasks().at(task);
  ASSERT_OK(cluster_->Signal(task, SIGKILL));
  ASSERT_OK(WaitUntil("a new " + task, [&] {
    const auto now = cluster_->Tasks();
    return now.count(task) > 0 && now.at(task) != before;
  }));
}

void FollowedJobTest::Stop() {
  cluster_->SignalLauncher(SIGTERM);
  ASSERT_OK(cluster_->Wait().status());
  cluster_.reset();
}

std::map<int, int> FollowedJobTest::Counts() const {
  const CheckpointStore store((root_ / "ckpt").string());
  const auto steps = store.ListSteps();
  EXPECT_OK(steps);
  const auto reader = CheckpointReader::Open(store.PathOf(steps->back()));
  EXPECT_OK(reader);
  return CountsOf(**reader, records_);
}

void FollowedJobTest::ExpectOnceOrTwice() const {
  const std::map<int, int> counts = Counts();
  EXPECT_EQ(counts.count(0), 0) << "a record was left out";
  for (const auto& [times, records] : counts) EXPECT_LE(times, 2);
}

}  // namespace parasol

// Jobs whose tasks have keys by a token.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/trust/job_token.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using testing::HasSubstr;

JobToken TokenFor(const std::string& job) {
  return JobToken::Parse(absl::StrCat("a token for tests: ", job)).value();
}

std::string DirectoryFor(const std::string& test) {
  return absl::StrCat(testing::TempDir(), "/", test);
}

void ExpectTrains(TestCluster& cluster) {
  cluster.SetToken(TokenFor("a"));
  ASSERT_OK(cluster.Start());
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_OK(cluster.WaitForWorker(0));
  EXPECT_OK(cluster.WaitForWorker(1));
  EXPECT_OK(cluster.WaitForEvaluator());
}

TEST(TokenTest, JobWithPsTrainsAndEnds) {
  TestCluster cluster(QuadrantsJob(/*steps=*/200), /*num_ps=*/2,
                      /*num_workers=*/2, DirectoryFor("with_ps"));
  ExpectTrains(cluster);
}

TEST(TokenTest, JobWithoutPsTrainsAndEnds) {
  job::Job job = QuadrantsJob(/*steps=*/50);
  job.mutable_strategy()->mutable_multi_worker_mirrored();
  TestCluster cluster(std::move(job), /*num_ps=*/0, /*num_workers=*/2,
                      DirectoryFor("without_ps"));
  ExpectTrains(cluster);
}

TEST(TokenTest, TasksOfAnotherTokenAreNotOfTheJob) {
  TestCluster cluster(QuadrantsJob(/*steps=*/200), /*num_ps=*/1,
                      /*num_workers=*/1, DirectoryFor("other"));
  cluster.SetToken(TokenFor("a"));
  ASSERT_OK(cluster.StartChief());
  cluster.SetToken(TokenFor("b"));
  EXPECT_THAT(cluster.Status().status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("is of another authority")));
  ASSERT_OK(cluster.StartPs(0));
  ASSERT_OK(cluster.StartWorker(0));
  cluster.SetToken(TokenFor("a"));
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, cluster.Status());
  EXPECT_EQ(status.phase(), wire::WAITING_FOR_PS);
  EXPECT_TRUE(absl::IsCancelled(cluster.StopPs(0)));
  EXPECT_TRUE(absl::IsCancelled(cluster.StopWorker(0)));
  ASSERT_OK(cluster.StartPs(0));
  ASSERT_OK(cluster.StartWorker(0));
  EXPECT_OK(cluster.WaitForChief());
}

}  // namespace
}  // namespace parasol

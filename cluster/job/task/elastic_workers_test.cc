#include "cluster/job/task/elastic_workers.h"

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::HasSubstr;

TEST(ElasticWorkersTest, AreThoseOfJobsWithPs) {
  job::Job job;
  EXPECT_OK(CheckElasticWorkers(job));
  job.mutable_parameter_server()->mutable_bounded_staleness()->set_bound(2);
  EXPECT_OK(CheckElasticWorkers(job));
  job.mutable_strategy()->mutable_multi_worker_mirrored();
  EXPECT_THAT(CheckElasticWorkers(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the workers have the variables")));
  job.mutable_strategy()->mutable_hybrid();
  EXPECT_FALSE(CheckElasticWorkers(job).ok());
}

TEST(ElasticWorkersTest, HaveNoFilesOfTheirOwn) {
  job::Job job;
  job.mutable_train()->set_auto_shard(job::Dataset::FILE);
  EXPECT_THAT(CheckElasticWorkers(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("train.auto_shard: FILE")));
}

TEST(ElasticWorkersTest, ComputeAGivenNumberOfReplicas) {
  job::Job job;
  job::Synchronous& mode =
      *job.mutable_parameter_server()->mutable_synchronous();
  EXPECT_THAT(CheckElasticWorkers(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("set synchronous.replicas_to_aggregate")));
  mode.set_total_replicas(8);
  EXPECT_THAT(CheckElasticWorkers(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("set synchronous.replicas_to_aggregate")));
  mode.set_replicas_to_aggregate(4);
  job.mutable_train()->set_auto_shard(job::Dataset::FILE);
  EXPECT_OK(CheckElasticWorkers(job));
  mode.set_lost_worker(job::Synchronous::FAIL);
  EXPECT_THAT(CheckElasticWorkers(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lost_worker: FAIL")));
}

}  // namespace
}  // namespace parasol

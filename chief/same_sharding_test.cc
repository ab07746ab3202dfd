#include "chief/same_sharding.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

durable::CheckpointManifest TwoShards() {
  durable::CheckpointManifest manifest;
  manifest.add_file();
  manifest.add_file();
  return manifest;
}

TEST(SameSharding, ShardingDependsOnTheNumberOfPsAndTheStrategy) {
  job::Job job;
  EXPECT_TRUE(HasSameSharding(TwoShards(), job, 2));
  EXPECT_FALSE(HasSameSharding(TwoShards(), job, 3));
  job.mutable_parameter_server()->set_placement(
      job::ParameterServerStrategy::ROUND_ROBIN);
  EXPECT_FALSE(HasSameSharding(TwoShards(), job, 2));
}

TEST(SameSharding, APsKeepsItsShardsUntilTheyTakePushesInAnotherWay) {
  durable::CheckpointManifest checkpoint = TwoShards();
  job::Job job;
  job.mutable_parameter_server()->set_wire_encoding(job::BFLOAT16);
  job.mutable_parameter_server()->mutable_bounded_staleness()->set_bound(2);
  EXPECT_TRUE(HasSameSharding(checkpoint, job, 2));
  job.mutable_parameter_server()->mutable_synchronous();
  EXPECT_FALSE(HasSameSharding(checkpoint, job, 2));
  *checkpoint.mutable_job() = job;
  EXPECT_TRUE(HasSameSharding(checkpoint, job, 2));
  job.mutable_model()->add_sparse_table()->set_name("users");
  EXPECT_FALSE(HasSameSharding(checkpoint, job, 2));
}

}  // namespace
}  // namespace parasol

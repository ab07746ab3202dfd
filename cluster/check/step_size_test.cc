#include "cluster/check/step_size.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::StartsWith;

TEST(StepSizeTest, AStepWithMoreExamplesThanThereAreIsSaid) {
  job::Job job;
  job.mutable_train()->set_batch_size(30);
  job.mutable_parameter_server()->mutable_synchronous()->set_total_replicas(2);
  EXPECT_EQ(LargeStepWarning(job, 60), "");
  EXPECT_THAT(LargeStepWarning(job, 59),
              StartsWith("train.batch_size: a step has 60 examples"));
  job.mutable_parameter_server()->mutable_local_steps()->set_steps(3);
  EXPECT_THAT(LargeStepWarning(job, 59),
              StartsWith("parameter_server.local_steps: an exchange has 60"));
}

}  // namespace
}  // namespace parasol

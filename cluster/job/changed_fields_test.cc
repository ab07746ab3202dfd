#include "cluster/job/changed_fields.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

job::Job SomeJob() {
  job::Job job;
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(.1);
  job.mutable_train()->set_batch_size(32);
  job.mutable_model()->add_layer()->mutable_dense()->set_units(8);
  job.mutable_model()->add_input_shape(28);
  return job;
}

TEST(ChangedFields, EqualJobsHaveNone) {
  EXPECT_THAT(ChangedFields(SomeJob(), SomeJob()), IsEmpty());
}

TEST(ChangedFields, AChangedValueIsNamedWithBothValues) {
  job::Job is = SomeJob();
  is.mutable_optimizer()->mutable_sgd()->set_learning_rate(.01);
  is.mutable_train()->set_batch_size(64);
  is.mutable_model()->mutable_layer(0)->mutable_dense()->set_units(16);
  EXPECT_THAT(ChangedFields(SomeJob(), is),
              ElementsAre("model.layer[0].dense.units: 8 -> 16",
                          "train.batch_size: 32 -> 64",
                          "optimizer.sgd.learning_rate: 0.1 -> 0.01"));
}

TEST(ChangedFields, WhatIsSetOnOneSideOnly) {
  job::Job is = SomeJob();
  is.mutable_optimizer()->mutable_adam()->set_beta_1(.8);
  is.set_seed(7);
  is.mutable_model()->add_input_shape(1);
  is.mutable_model()->add_layer();
  EXPECT_THAT(
      ChangedFields(SomeJob(), is),
      ElementsAre("seed: not set -> 7", "model.input_shape: [28] -> [28, 1]",
                  "model.layer: 1 entries -> 2 entries",
                  "optimizer.sgd: {learning_rate: 0.1} -> not set",
                  "optimizer.adam: not set -> {beta_1: 0.8}"));
}

TEST(ChangedFields, ManyAndLongOnesAreCut) {
  job::Job is = SomeJob();
  is.set_name(std::string(10000, 'x'));
  ASSERT_THAT(ChangedFields(SomeJob(), is), SizeIs(1));
  EXPECT_LT(ChangedFields(SomeJob(), is)[0].size(), 200u);
  job::Job was;
  for (int i = 0; i < 100; ++i) {
    was.mutable_model()->add_layer()->set_name("a");
  }
  is = was;
  for (job::Layer& layer : *is.mutable_model()->mutable_layer()) {
    layer.set_name("b");
  }
  const auto changed = ChangedFields(was, is);
  ASSERT_THAT(changed, SizeIs(kMaxChangedFields + 1));
  EXPECT_EQ(changed.back(), "84 more fields");
}

}  // namespace
}  // namespace parasol

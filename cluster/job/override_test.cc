#include "cluster/job/override.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kJob[] = R"pb(
  model {
    input_shape: 28
    input_shape: 28
    layer { flatten {} }
    layer { dense { units: 10 } }
  }
  optimizer {
    adam { beta_1: 0.5 }
    learning_rate_schedule {
      piecewise_constant_decay { boundary: 10 value: 0.5 }
    }
  }
)pb";

job::Job Given() { return ParseJob(kJob, "given").value(); }

TEST(ApplyOverrideTest, SetsAFieldOfEveryType) {
  job::Job job = Given();
  for (const char* override :
       {"name=a b=\"c\"", "seed=18446744073709551615",
        "optimizer.adam.learning_rate=1e-3", "optimizer.adam.amsgrad=true",
        "train.batch_size=64", "end.steps=9000000000",
        "parameter_server.placement=ROUND_ROBIN", "model.input_shape[1]=3",
        "optimizer.learning_rate_schedule.piecewise_constant_decay.value[0]="
        "0.25",
        "model.layer[1].dense.units=256",
        "model.layer[1].dense.bias_initializer.constant.value=-0.5"}) {
    EXPECT_OK(ApplyOverride(job, override));
  }
  ASSERT_OK_AND_ASSIGN(
      const job::Job want,
      ParseJob(R"pb(
                 name: "a b=\"c\""
                 seed: 18446744073709551615
                 model {
                   input_shape: 28
                   input_shape: 3
                   layer { flatten {} }
                   layer {
                     dense {
                       units: 256
                       bias_initializer { constant { value: -0.5 } }
                     }
                   }
                 }
                 train { batch_size: 64 }
                 optimizer {
                   adam { learning_rate: 0.001 beta_1: 0.5 amsgrad: true }
                   learning_rate_schedule {
                     piecewise_constant_decay { boundary: 10 value: 0.25 }
                   }
                 }
                 end { steps: 9000000000 }
                 parameter_server { placement: ROUND_ROBIN }
               )pb",
               "want"));
  EXPECT_EQ(job.DebugString(), want.DebugString());
}

TEST(ApplyOverrideTest, NamingAMemberOfAChoiceMakesItTheChoice) {
  job::Job job = Given();
  EXPECT_OK(ApplyOverride(job, "optimizer.sgd.momentum=0.9"));
  EXPECT_FALSE(job.optimizer().has_adam());
  EXPECT_EQ(job.optimizer().sgd().momentum(), 0.9);
  EXPECT_OK(ApplyOverride(job, "optimizer.adagrad={ epsilon: 1 }"));
  EXPECT_EQ(job.optimizer().adagrad().epsilon(), 1);
  EXPECT_OK(ApplyOverride(job, "model.layer[0].activation=RELU"));
  EXPECT_EQ(job.model().layer(0).activation(), job::RELU);
}

TEST(ApplyOverrideTest, AScheduleStaysUntilAnotherIsNamed) {
  job::Job job = Given();
  EXPECT_OK(ApplyOverride(job, "optimizer.sgd.momentum=0.9"));
  EXPECT_TRUE(
      job.optimizer().learning_rate_schedule().has_piecewise_constant_decay());
  EXPECT_OK(ApplyOverride(
      job, "optimizer.learning_rate_schedule.cosine_decay.decay_steps=2344"));
  EXPECT_EQ(
      job.optimizer().learning_rate_schedule().cosine_decay().decay_steps(),
      2344);
  EXPECT_OK(ApplyOverride(job, "optimizer.learning_rate_schedule={}"));
  EXPECT_EQ(job.optimizer().learning_rate_schedule().kind_case(),
            job::LearningRateSchedule::KIND_NOT_SET);
}

TEST(ApplyOverrideTest, AMessageInBracesReplacesTheOneBefore) {
  job::Job job = Given();
  EXPECT_OK(ApplyOverride(job, "optimizer.adam={}"));
  EXPECT_TRUE(job.optimizer().has_adam());
  EXPECT_FALSE(job.optimizer().adam().has_beta_1());
  EXPECT_OK(ApplyOverride(job, "model.layer[1]={ flatten {} }"));
  EXPECT_EQ(job.model().layer_size(), 2);
  EXPECT_TRUE(job.model().layer(1).has_flatten());
}

TEST(ApplyOverrideTest, AMessageMayEndWithAComment) {
  job::Job job = Given();
  EXPECT_OK(ApplyOverride(job, "optimizer.sgd={ momentum: 0.5 } # as before"));
  EXPECT_EQ(job.optimizer().sgd().momentum(), 0.5);
}

TEST(ApplyOverrideTest, AnEmptyStringIsAValue) {
  job::Job job = Given();
  EXPECT_OK(ApplyOverride(job, "checkpoint.directory="));
  EXPECT_TRUE(job.checkpoint().has_directory());
}

TEST(ApplyOverrideTest, FaultsAreNamedAndChangeNothing) {
  struct Case {
    std::string override;
    std::string words;
  };
  const Case cases[] = {
      {"", "no '='"},
      {"end.steps", "no '='"},
      {"=1", "\"\" is not a field of Job"},
      {"optimizer.=1", "\"\" is not a field of Optimizer"},
      {"optimizer.adm.beta_1=1",
       "\"adm\" is not a field of Optimizer, which has: sgd, adagrad, adam"},
      {"optimizer.sgd.rate=1",
       "\"rate\" is not a field of Sgd, which has: learning_rate, momentum, "
       "nesterov"},
      {"model.layer.name=x", "\"layer\": layer is a list; write an index"},
      {"model.layer[2].name=x", "\"layer[2]\": layer has 2 elements"},
      {"model.layer[-1].name=x", "\"layer[-1]\" is not a field with an index"},
      {"model.layer[].name=x", "\"layer[]\" is not a field with an index"},
      {"model.layer[0.name=x", "\"layer[0\" is not a field with an index"},
      {"model.layer[99999999999].name=x", "is not a field with an index"},
      {"model.input_shape[2]=1", "input_shape has 2 elements"},
      {"optimizer[0].sgd.momentum=1", "optimizer is not a list"},
      {"name.first=x", "\"name\" has no fields of its own"},
      {"optimizer=adam",
       "it is a group of fields, in braces or one by one: "
       "sgd, adagrad, adam"},
      {"optimizer.adam=", "it is a group of fields"},
      {"optimizer.adam={ rate: 1 }", "rate"},
      {"optimizer.adam={", "is not a value of it"},
      {"optimizer.adam={} {}", "is not a value of it"},
      {"optimizer={ sgd {} adam {} }",
       "Field \"adam\" is specified along with field \"sgd\", another member"},
      {"optimizer={ sgd {} sgd {} }", "\"sgd\" is specified multiple times"},
      {"model.layer[1]={ dense {} name: 'x' flatten {} }",
       "Field \"flatten\" is specified along with field \"dense\""},
      {"end={ steps: 1 } name: 'x'", "is not a value of it"},
      {"optimizer.adam={} } end { steps: 1", "is not a value of it"},
      {"strategy.mirrored={ cross_device_ops: RING }",
       "Unknown enumeration value of \"RING\" for field \"cross_device_ops\": "
       "it is one of CROSS_DEVICE_OPS_UNSPECIFIED, HIERARCHICAL_COPY, "
       "REDUCTION_TO_ONE_DEVICE, NCCL"},
      {"seed=-1", "seed: \"-1\" is not a value of it"},
      {"seed=18446744073709551616", "seed: \"18446744073709551616\""},
      {"seed=1 2", "seed: \"1 2\""},
      {"train.batch_size=2147483648", "batch_size: \"2147483648\""},
      {"train.batch_size=1.5", "batch_size: \"1.5\""},
      {"train.batch_size=", "batch_size: \"\""},
      {"train.batch_size=many", "batch_size: \"many\""},
      {"end.epochs=inf",
       "epochs: \"inf\" is not a value of it: it is a finite"},
      {"end.epochs=nan", "epochs: \"nan\""},
      {"end.epochs=1e999", "epochs: \"1e999\""},
      {"model.layer[1].dense.bias_initializer.constant.value=1e39",
       "value: \"1e39\" is not a value of it: it is a finite"},
      {"optimizer.learning_rate_schedule.piecewise_constant_decay.value[0]=inf",
       "value: \"inf\" is not a value of it: it is a finite"},
      {"worker.overlap=yes", "overlap: \"yes\""},
      {"worker.non_finite_loss=HALT",
       "it is one of NON_FINITE_LOSS_UNSPECIFIED, STOP, CONTINUE"},
      {"optimizer.sgd.momentum=\n", "\\n"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.override);
    job::Job job = Given();
    EXPECT_THAT(ApplyOverride(job, c.override),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("--set="), HasSubstr(c.words),
                               Not(HasSubstr("\n")))));
    EXPECT_EQ(job.DebugString(), Given().DebugString());
  }
}

}  // namespace
}  // namespace parasol

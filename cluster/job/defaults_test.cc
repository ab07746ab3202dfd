#include "cluster/job/defaults.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

// `given` with its defaults is `want`.
void ExpectFilled(const std::string& given, const std::string& want) {
  ASSERT_OK_AND_ASSIGN(job::Job job, ParseJob(given, "given"));
  ASSERT_OK_AND_ASSIGN(const job::Job wanted, ParseJob(want, "want"));
  FillDefaults(job);
  EXPECT_EQ(job.DebugString(), wanted.DebugString());
  FillDefaults(job);
  EXPECT_EQ(job.DebugString(), wanted.DebugString()) << "applied twice";
}

constexpr char kEmptyJob[] = R"pb(
  name: "job"
  seed: 0
  checkpoint { every_seconds: 60 max_to_keep: 5 full_every: 1 }
  parameter_server {
    placement: BALANCED_BYTES
    min_size { min_shard_bytes: 262144 max_shards: 0 }
    asynchronous {}
    wire_encoding: FLOAT32
    push_share: 1
    durability: CHECKPOINT
  }
  worker {
    non_finite_loss: STOP
    overlap: true
    payload_lanes: AUTO
    compute_niceness: 10
  }
  summary { every_seconds: 10 }
  tensorboard: true
  tensorboard_histograms: false
)pb";

TEST(FillDefaultsTest, AnEmptyJobGetsNoPartThatItsUserHasToChoose) {
  ExpectFilled("", kEmptyJob);
}

TEST(FillDefaultsTest, AnUnspecifiedChoiceIsTheDefault) {
  ExpectFilled(
      "parameter_server { placement: PLACEMENT_UNSPECIFIED } "
      "worker { non_finite_loss: NON_FINITE_LOSS_UNSPECIFIED }",
      kEmptyJob);
}

TEST(FillDefaultsTest, NothingIsSmoothedByDefault) {
  for (const char* loss : {"sparse_categorical_crossentropy",
                           "categorical_crossentropy", "binary_crossentropy"}) {
    ExpectFilled(absl::StrCat("model { loss { ", loss, " {} } }"),
                 absl::StrCat(kEmptyJob, "model { loss { ", loss,
                              " { label_smoothing: 0 } } }"));
  }
}

TEST(FillDefaultsTest, WhatIsSetStays) {
  constexpr char kSet[] = R"pb(
    name: "n"
    seed: 7
    model {
      sparse_table {
        name: "t"
        width: 4
        initializer { zeros {} }
        optimizer { sgd { learning_rate: 1 momentum: 0 nesterov: false } }
      }
      layer {
        name: "d"
        dense {
          units: 3
          use_bias: false
          activation: RELU
          kernel_initializer { he_normal {} }
          bias_initializer { random_uniform { minval: 0 maxval: 0 } }
          kernel_l2: 1
          bias_l2: 2
        }
      }
    }
    train {
      idx {}
      batch_size: 1
      shuffle_buffer: 0
      prefetch_batches: 1
      decode_threads: 3
      auto_shard: OFF
      on_corrupt: SKIP
    }
    optimizer { sgd { learning_rate: 0 momentum: 0.5 nesterov: true } }
    summary { every_steps: 5 }
    checkpoint { every_steps: 9 max_to_keep: 1 full_every: 7 }
    parameter_server {
      placement: ROUND_ROBIN
      fixed_shards { shards: 2 }
      synchronous {
        replicas_to_aggregate: 2
        total_replicas: 3
        lost_worker: FAIL
      }
      wire_encoding: BFLOAT16
      push_share: 0.5
      durability: JOURNAL
    }
    worker {
      non_finite_loss: CONTINUE
      overlap: false
      payload_lanes: TCP
      compute_niceness: 0
    }
    tensorboard: false
    tensorboard_histograms: true
  )pb";
  ExpectFilled(kSet, kSet);
}

TEST(FillDefaultsTest, CheckpointsGoByTheClockUnlessTheyGoBySteps) {
  ExpectFilled("checkpoint { every_steps: 5 }",
               R"pb(
                 name: "job"
                 seed: 0
                 checkpoint { every_steps: 5 max_to_keep: 5 full_every: 1 }
                 parameter_server {
                   placement: BALANCED_BYTES
                   min_size { min_shard_bytes: 262144 max_shards: 0 }
                   asynchronous {}
                   wire_encoding: FLOAT32
                   push_share: 1
                   durability: CHECKPOINT
                 }
                 worker {
                   non_finite_loss: STOP
                   overlap: true
                   payload_lanes: AUTO
                   compute_niceness: 10
                 }
                 summary { every_seconds: 10 }
                 tensorboard: true
                 tensorboard_histograms: false
               )pb");
}

TEST(FillDefaultsTest, ATablesRowsAreInitialisedAsKerassEmbeddings) {
  ASSERT_OK_AND_ASSIGN(
      job::Job job,
      ParseJob("model { sparse_table { optimizer { adam {} } } }", "f"));
  FillDefaults(job);
  const job::SparseTable& table = job.model().sparse_table(0);
  EXPECT_FLOAT_EQ(table.initializer().random_uniform().minval(), -0.05f);
  EXPECT_FLOAT_EQ(table.initializer().random_uniform().maxval(), 0.05f);
  EXPECT_EQ(table.optimizer().adam().beta_1(), 0.9);
}

TEST(FillDefaultsTest, ASynchronousStepHasAReplicaForEachWorker) {
  struct Case {
    std::string mode;
    int aggregate;
    int total;
  };
  const Case cases[] = {
      {"", 3, 3},
      {"total_replicas: 5", 3, 5},
      {"total_replicas: 2", 2, 2},
      {"replicas_to_aggregate: 2", 2, 2},
      {"replicas_to_aggregate: 2 total_replicas: 4", 2, 4},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.mode);
    ASSERT_OK_AND_ASSIGN(
        job::Job job, ParseJob(absl::StrCat("parameter_server { synchronous { ",
                                            c.mode, " } }"),
                               "f"));
    FillDefaults(job);
    ASSERT_OK(FillClusterDefaults(job, /*workers=*/3));
    const job::Synchronous& mode = job.parameter_server().synchronous();
    EXPECT_EQ(mode.replicas_to_aggregate(), c.aggregate);
    EXPECT_EQ(mode.total_replicas(), c.total);
    EXPECT_EQ(mode.lost_worker(), job::Synchronous::REASSIGN);
  }
}

TEST(FillDefaultsTest, TheLearningRateIsThatOfAllReplicasExamples) {
  job::Job job;
  job.mutable_train()->set_batch_size(5);
  job.mutable_parameter_server()->mutable_synchronous();
  for (job::Optimizer* optimizer :
       {job.mutable_optimizer(),
        job.mutable_model()->add_sparse_table()->mutable_optimizer()}) {
    optimizer->mutable_sgd();
    optimizer->mutable_learning_rate_by_global_batch()->add_batch(10);
    optimizer->mutable_learning_rate_by_global_batch()->add_rate(.5);
  }
  job::Job other_replicas = job;
  ASSERT_OK(FillClusterDefaults(job, /*workers=*/2));
  EXPECT_EQ(job.optimizer().sgd().learning_rate(), .5);
  EXPECT_EQ(job.model().sparse_table(0).optimizer().sgd().learning_rate(), .5);
  EXPECT_THAT(FillClusterDefaults(other_replicas, /*workers=*/3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a global batch of 15 examples")));
}

job::Job LocalStepsJob() {
  job::Job job;
  job.mutable_train()->set_batch_size(32);
  job.mutable_optimizer()->mutable_adam();
  job::LocalSteps& local =
      *job.mutable_parameter_server()->mutable_local_steps();
  local.set_steps(100);
  local.mutable_outer()->mutable_sgd()->set_momentum(.9);
  return job;
}

TEST(FillDefaultsTest, WhoHasValuesTakesTheOuterOptimizer) {
  job::Job job = LocalStepsJob();
  for (int i = 0; i < 2; ++i) {
    FillDefaults(job);
    ASSERT_OK(FillClusterDefaults(job, /*workers=*/2));
    const job::LocalSteps& local = job.parameter_server().local_steps();
    EXPECT_EQ(job.optimizer().sgd().momentum(), .9);
    EXPECT_EQ(job.optimizer().sgd().learning_rate(), .01);
    EXPECT_EQ(local.inner().adam().beta_1(), .9);
    EXPECT_FALSE(local.has_outer());
    EXPECT_EQ(local.batch_size(), 32);
    EXPECT_EQ(job.train().batch_size(), 3200);
  }
}

TEST(FillDefaultsTest, FilledLocalStepsAreWrittenAsTheyWereRead) {
  job::Job job = LocalStepsJob();
  FillDefaults(job);
  ASSERT_OK(FillClusterDefaults(job, /*workers=*/2));
  job::Job again = WithLocalStepsAsWritten(job);
  EXPECT_EQ(again.train().batch_size(), 32);
  EXPECT_EQ(again.optimizer().adam().beta_1(), .9);
  EXPECT_EQ(again.parameter_server().local_steps().outer().sgd().momentum(),
            .9);
  FillDefaults(again);
  ASSERT_OK(FillClusterDefaults(again, /*workers=*/2));
  EXPECT_EQ(again.SerializeAsString(), job.SerializeAsString());
}

TEST(FillDefaultsTest, AnExchangeHasItsShareOfAGlobalBatch) {
  job::Job job = LocalStepsJob();
  job.mutable_train()->clear_batch_size();
  job.mutable_train()->set_global_batch_size(64);
  job.mutable_parameter_server()->mutable_synchronous();
  FillDefaults(job);
  ASSERT_OK(FillClusterDefaults(job, /*workers=*/4));
  EXPECT_EQ(job.parameter_server().local_steps().batch_size(), 16);
  EXPECT_EQ(job.train().batch_size(), 1600);
}

TEST(FillDefaultsTest, AnExchangeHasALimit) {
  job::Job job = LocalStepsJob();
  job.mutable_parameter_server()->mutable_local_steps()->set_steps(1 << 30);
  FillDefaults(job);
  EXPECT_THAT(FillClusterDefaults(job, /*workers=*/2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("local_steps.steps: 1073741824 steps of 32")));
}

TEST(FillDefaultsTest, LayersAreNamedByKindAndPosition) {
  ASSERT_OK_AND_ASSIGN(
      job::Job job, ParseJob("model { layer { flatten {} } layer { dense {} } "
                             "layer { activation: RELU } layer { } }",
                             "f"));
  FillDefaults(job);
  EXPECT_EQ(job.model().layer(0).name(), "flatten_0");
  EXPECT_EQ(job.model().layer(1).name(), "dense_1");
  EXPECT_EQ(job.model().layer(2).name(), "activation_2");
  EXPECT_EQ(job.model().layer(1).dense().use_bias(), true);
  EXPECT_TRUE(
      job.model().layer(1).dense().kernel_initializer().has_glorot_uniform());
  EXPECT_TRUE(job.model().layer(1).dense().bias_initializer().has_zeros());
}

TEST(FillDefaultsTest, InitializersHaveKerasDefaults) {
  ASSERT_OK_AND_ASSIGN(
      job::Job job,
      ParseJob("model { layer { dense { kernel_initializer { random_normal {} }"
               "                        bias_initializer { constant {} } } }"
               "        layer { dense { kernel_initializer { random_uniform {} "
               "} } } }",
               "f"));
  FillDefaults(job);
  const job::Dense& first = job.model().layer(0).dense();
  EXPECT_EQ(first.kernel_initializer().random_normal().stddev(), 0.05f);
  EXPECT_TRUE(first.bias_initializer().constant().has_value());
  const job::Dense& second = job.model().layer(1).dense();
  EXPECT_EQ(second.kernel_initializer().random_uniform().minval(), -0.05f);
  EXPECT_EQ(second.kernel_initializer().random_uniform().maxval(), 0.05f);
}

TEST(FillDefaultsTest, DataIsShuffledForTrainingOnly) {
  ASSERT_OK_AND_ASSIGN(job::Job job, ParseJob("train {} eval {}", "f"));
  FillDefaults(job);
  EXPECT_EQ(job.train().shuffle_buffer(), 10000);
  EXPECT_EQ(job.eval().shuffle_buffer(), 0);
  EXPECT_EQ(job.train().batch_size(), 32);
  EXPECT_EQ(job.eval().batch_size(), 32);
  EXPECT_EQ(job.train().prefetch_batches(), 2);
}

TEST(FillDefaultsTest, OptimizersHaveKerasDefaults) {
  const std::pair<std::string, std::string> cases[] = {
      {"sgd {}", "sgd { learning_rate: 0.01 momentum: 0 nesterov: false }"},
      {"adagrad {}",
       "adagrad { learning_rate: 0.001 initial_accumulator_value: 0.1 epsilon: "
       "1e-7 }"},
      {"adam {}",
       "adam { learning_rate: 0.001 beta_1: 0.9 beta_2: 0.999 epsilon: 1e-7 "
       "amsgrad: false }"},
      {"adam { epsilon: 0 }",
       "adam { learning_rate: 0.001 beta_1: 0.9 beta_2: 0.999 epsilon: 1e-7 "
       "amsgrad: false }"},
      {"lazy_adam {}",
       "lazy_adam { learning_rate: 0.001 beta_1: 0.9 beta_2: 0.999 epsilon: "
       "1e-7 amsgrad: false }"},
      {"rmsprop {}",
       "rmsprop { learning_rate: 0.001 rho: 0.9 momentum: 0 epsilon: 1e-7 "
       "centered: false }"},
      {"adadelta {}",
       "adadelta { learning_rate: 0.001 rho: 0.95 epsilon: 1e-7 }"},
      {"adamax {}",
       "adamax { learning_rate: 0.001 beta_1: 0.9 beta_2: 0.999 epsilon: 1e-7 "
       "}"},
      {"nadam {}",
       "nadam { learning_rate: 0.001 beta_1: 0.9 beta_2: 0.999 epsilon: 1e-7 "
       "schedule_decay: 0.004 }"},
      {"ftrl {}",
       "ftrl { learning_rate: 0.001 learning_rate_power: -0.5 "
       "initial_accumulator_value: 0.1 l1_regularization_strength: 0 "
       "l2_regularization_strength: 0 l2_shrinkage_regularization_strength: 0 "
       "beta: 0 }"},
      {"adamw {}",
       "adamw { learning_rate: 0.001 beta_1: 0.9 beta_2: 0.999 epsilon: 1e-7 "
       "amsgrad: false weight_decay: 0.004 }"},
      {"lion {}",
       "lion { learning_rate: 0.001 beta_1: 0.9 beta_2: 0.99 weight_decay: 0 "
       "}"},
      {"lamb {}",
       "lamb { learning_rate: 0.001 beta_1: 0.9 beta_2: 0.999 epsilon: 1e-6 "
       "weight_decay: 0 }"},
      {"rowwise_adagrad {}",
       "rowwise_adagrad { learning_rate: 0.01 initial_accumulator_value: 0 "
       "epsilon: 1e-8 }"},
      {"lamb { exclude_from_weight_decay: 'bias' }",
       "lamb { learning_rate: 0.001 beta_1: 0.9 beta_2: 0.999 epsilon: 1e-6 "
       "weight_decay: 0 exclude_from_weight_decay: 'bias' "
       "exclude_from_layer_adaptation: 'bias' }"},
  };
  for (const auto& [given, want] : cases) {
    ASSERT_OK_AND_ASSIGN(job::Job job,
                         ParseJob("optimizer {" + given + "}", "given"));
    ASSERT_OK_AND_ASSIGN(const job::Job wanted,
                         ParseJob("optimizer {" + want + "}", "want"));
    FillDefaults(job);
    EXPECT_EQ(job.optimizer().DebugString(), wanted.optimizer().DebugString());
  }
}

TEST(FillDefaultsTest, LearningRateSchedulesHaveKerasDefaults) {
  struct Case {
    std::string given;
    std::string want;
  };
  const Case cases[] = {
      {"", ""},
      {"exponential_decay {}", "exponential_decay { staircase: false }"},
      {"piecewise_constant_decay {}", "piecewise_constant_decay {}"},
      {"polynomial_decay {}",
       "polynomial_decay { end_learning_rate: 0.0001 power: 1 cycle: false }"},
      {"inverse_time_decay {}", "inverse_time_decay { staircase: false }"},
      {"cosine_decay {}", "cosine_decay { alpha: 0 }"},
  };
  const auto parse = [](const std::string& schedule) {
    return ParseJob("optimizer { learning_rate_schedule {" + schedule + "} }",
                    "f");
  };
  for (const Case& c : cases) {
    ASSERT_OK_AND_ASSIGN(job::Job job, parse(c.given));
    ASSERT_OK_AND_ASSIGN(const job::Job want, parse(c.want));
    FillDefaults(job);
    EXPECT_EQ(job.optimizer().DebugString(), want.optimizer().DebugString());
  }
}

}  // namespace
}  // namespace parasol

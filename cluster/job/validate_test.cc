#include "cluster/job/validate.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "cluster/job/override.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kJob[] = R"pb(
  model {
    input_shape: 28
    input_shape: 28
    layer { flatten {} }
    layer { dense { units: 16 activation: RELU } }
    layer { dense { units: 10 } }
    loss { sparse_categorical_crossentropy {} }
  }
  train { idx { images: "a" labels: "b" } }
  eval { idx { images: "c" labels: "d" } }
  optimizer { adam {} }
  end { epochs: 1 }
)pb";

job::Job Good() {
  job::Job job = ParseJob(kJob, "good").value();
  FillDefaults(job);
  return job;
}

auto IsFault(const std::string& start) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(StartsWith(start), Not(HasSubstr("\n"))));
}

TEST(ValidateTest, AGoodJobIsAccepted) { EXPECT_OK(Validate(Good())); }

TEST(ValidateTest, TheBordersOfRangesAreIn) {
  for (const char* override :
       {"optimizer.adam.beta_1=0",
        "optimizer.adam.learning_rate=0",
        "optimizer.sgd={ learning_rate: 1 momentum: 1 }",
        "train.batch_size=1",
        "optimizer.ftrl={ learning_rate_power: 0 }",
        "optimizer.clipnorm=1",
        "optimizer.nadam={ schedule_decay: 0 beta_1: 0 }",
        "optimizer.learning_rate_schedule={}",
        "optimizer.learning_rate_schedule.cosine_decay={ decay_steps: 1 alpha: "
        "1 }",
        "optimizer.learning_rate_schedule.piecewise_constant_decay={ boundary: "
        "0 value: 0 }",
        "optimizer.learning_rate_schedule.polynomial_decay={ decay_steps: 1 "
        "power: 0 }",
        "train.batch_size=2147483647",
        "train.shuffle_buffer=0",
        "train.prefetch_batches=1",
        "worker.max_device_table_bytes=1",
        "end.steps=1",
        "checkpoint.every_steps=1",
        "checkpoint.max_to_keep=1",
        "checkpoint.full_every=100",
        "checkpoint.keep_every_hours=0.01",
        "parameter_server.fixed_shards.shards=1",
        "parameter_server.min_size={ min_shard_bytes: 1 max_shards: 0 }",
        "parameter_server.max_size={ max_shard_bytes: 1 }"}) {
    SCOPED_TRACE(override);
    job::Job job = Good();
    ASSERT_OK(ApplyOverride(job, override));
    EXPECT_OK(Validate(job));
  }
}

struct FaultyOverride {
  std::string override;
  std::string fault;
};

void ExpectFaults(const std::vector<FaultyOverride>& cases) {
  for (const FaultyOverride& c : cases) {
    SCOPED_TRACE(c.override);
    job::Job job = Good();
    ASSERT_OK(ApplyOverride(job, c.override));
    EXPECT_THAT(Validate(job), IsFault(c.fault));
  }
}

TEST(ValidateTest, AllReducesOfUsersAreChecked) {
  const auto checked = [](const std::string& strategy) {
    job::Job job = Good();
    EXPECT_OK(ApplyOverride(job, absl::StrCat("strategy={ ", strategy, " }")));
    FillDefaults(job);
    return Validate(job);
  };
  EXPECT_OK(checked("multi_worker_mirrored { custom { type: 'tree' } }"));
  EXPECT_THAT(
      checked("multi_worker_mirrored { custom {} }"),
      IsFault("strategy.multi_worker_mirrored.custom.type: is not set"));
  EXPECT_THAT(
      checked("multi_worker_mirrored { communication: RING "
              "custom { type: 'tree' } }"),
      IsFault("strategy.multi_worker_mirrored.custom: takes the place of "
              "communication"));
  EXPECT_THAT(checked("hybrid { all_reduce { custom {} } }"),
              IsFault("strategy.hybrid.all_reduce.custom.type: is not set"));
  EXPECT_OK(checked("mirrored { custom { type: 'tree' } }"));
  EXPECT_THAT(checked("mirrored { custom {} }"),
              IsFault("strategy.mirrored.custom.type: is not set"));
  EXPECT_THAT(checked("mirrored { custom { type: 'tree' } "
                      "cross_device_ops: HIERARCHICAL_COPY }"),
              IsFault("strategy.mirrored.custom: takes the place of "
                      "cross_device_ops: leave that out"));
}

TEST(ValidateTest, NamesShapesAndLayersOutsideTheirRangesAreNamed) {
  ExpectFaults({
      {"name=", "name: \"\""},
      {"name=a b", "name: \"a b\""},
      {"name=a\nb", "name: \"a\\nb\""},
      {"model.input_shape[0]=0", "model.input_shape[0]: 0"},
      {"model.input_shape[0]=-1", "model.input_shape[0]: -1"},
      {"model.input_shape[0]=2147483647", "model.input_shape"},
      {"model.layer[1].name=", "model.layer[1].name"},
      {"model.layer[1].name=dense_2", "model.layer[2]"},
      {"model.layer[1].name=a b", "model.layer[1]"},
      {"model.layer[0]={ name: \"x\" }", "model.layer[0]: no kind"},
      {"model.layer[0].activation=RELU", "model.layer[1]"},
      {"model.layer[1].dense.units=0", "model.layer[1].dense.units: 0"},
      {"model.layer[1].dense.units=-5", "model.layer[1].dense.units: -5"},
      {"model.layer[1].dense.units=2147483648", "model.layer[1].dense.units"},
      {"model.layer[1].dense.units=2147483647", "model.layer[1]"},
      {"model.loss={}", "model.loss"},
  });
}

TEST(ValidateTest, AnInitializerOutsideItsRangeIsNamedWithItsLayer) {
  ExpectFaults({
      {"model.layer[2].dense.kernel_initializer.random_normal={ stddev: -1 }",
       "model.layer[2].dense.kernel_initializer: random_normal.stddev: -1"},
      {"model.layer[2].dense.kernel_initializer.random_normal={ mean: nan }",
       "model.layer[2].dense.kernel_initializer: random_normal.mean: nan"},
      {"model.layer[2].dense.bias_initializer.constant={ value: inf }",
       "model.layer[2].dense.bias_initializer: constant.value: inf"},
      {"model.layer[2].dense.bias_initializer.random_uniform="
       "{ minval: 1 maxval: 0 }",
       "model.layer[2].dense.bias_initializer: random_uniform: minval 1"},
      {"model.layer[2].dense.bias_initializer={}",
       "model.layer[2].dense.bias_initializer: no initializer"},
  });
}

TEST(ValidateTest, ADataSetsValueOutsideItsRangeIsNamed) {
  ExpectFaults({
      {"train.idx.images=", "train.idx.images"},
      {"eval.idx.labels=", "eval.idx.labels"},
      {"eval.idx.labels=a\nb", "eval.idx.labels: \"a\\nb\""},
      {"train.batch_size=0", "train.batch_size: 0"},
      {"train.batch_size=-1", "train.batch_size: -1"},
      {"worker.max_device_table_bytes=0", "worker.max_device_table_bytes"},
      {"train.shuffle_buffer=-1", "train.shuffle_buffer: -1"},
      {"eval.prefetch_batches=0", "eval.prefetch_batches: 0"},
      {"eval.prefetch_batches=1025", "eval.prefetch_batches: 1025"},
  });
}

TEST(ValidateTest, AnOptimizersValueOutsideItsRangeIsNamed) {
  ExpectFaults({
      {"optimizer={}", "optimizer: none is chosen"},
      {"optimizer.adam.learning_rate=-1",
       "optimizer: adam.learning_rate is -1"},
      {"optimizer.adam.beta_1=1", "optimizer: adam.beta_1 is 1"},
      {"optimizer.adam.beta_2=-0.1", "optimizer: adam.beta_2 is -0.1"},
      {"optimizer.adam.epsilon=-1", "optimizer: adam.epsilon is -1"},
      {"optimizer={ adam { beta_1: nan } }", "optimizer: adam.beta_1 is nan"},
      {"optimizer.sgd.momentum=1.1", "optimizer: sgd.momentum is 1.1"},
      {"optimizer={ sgd { learning_rate: inf } }",
       "optimizer: sgd.learning_rate is inf"},
      {"optimizer.adagrad={ initial_accumulator_value: -1 }",
       "optimizer: adagrad.initial_accumulator_value is -1"},
      {"optimizer.adagrad={ epsilon: -1 }", "optimizer: adagrad.epsilon is -1"},
      {"optimizer.lazy_adam={ beta_1: 1 }", "optimizer: lazy_adam.beta_1 is 1"},
      {"optimizer.rmsprop={ rho: 1 }", "optimizer: rmsprop.rho is 1"},
      {"optimizer.rmsprop={ momentum: 2 }", "optimizer: rmsprop.momentum is 2"},
      {"optimizer.adadelta={ epsilon: -1 }",
       "optimizer: adadelta.epsilon is -1; it must be a float32 above 0"},
      {"optimizer.adamax={ beta_2: -1 }", "optimizer: adamax.beta_2 is -1"},
      {"optimizer.nadam={ schedule_decay: -1 }",
       "optimizer: nadam.schedule_decay is -1"},
      {"optimizer.ftrl={ learning_rate: 0 }",
       "optimizer: ftrl.learning_rate is 0"},
      {"optimizer.ftrl={ learning_rate_power: 0.5 }",
       "optimizer: ftrl.learning_rate_power is 0.5; it must be a float32 of at "
       "most 0"},
  });
}

TEST(ValidateTest, ClippingAndSchedulesOutsideTheirRangesAreNamed) {
  ExpectFaults({
      {"optimizer.clipvalue=0", "optimizer: clipvalue is 0"},
      {"optimizer.lamb={ exclude_from_weight_decay: 'bias' "
       "exclude_from_weight_decay: '(' }",
       "optimizer: lamb.exclude_from_weight_decay[1] is \"(\"; it must be a "
       "regular expression"},
      {"optimizer.clipnorm=-1", "optimizer: clipnorm is -1"},
      {"optimizer.global_clipnorm=1e39", "optimizer: global_clipnorm is 1e+39"},
      {"optimizer.learning_rate_schedule.cosine_decay.alpha=0.1",
       "optimizer.learning_rate_schedule: cosine_decay.decay_steps is 0"},
      {"optimizer.learning_rate_schedule.exponential_decay="
       "{ decay_steps: 10 decay_rate: -0.5 }",
       "optimizer.learning_rate_schedule: exponential_decay.decay_rate is "
       "-0.5"},
      {"optimizer.learning_rate_schedule.piecewise_constant_decay="
       "{ boundary: 10 }",
       "optimizer.learning_rate_schedule: piecewise_constant_decay.value is a "
       "list of 0 for 1"},
  });
}

TEST(ValidateTest, WhatTrainingIsTunedWithHasItsRanges) {
  ExpectFaults({
      {"optimizer.learning_rate_schedule.warmup.start=.1",
       "optimizer.learning_rate_schedule: warmup.steps is 0"},
      {"optimizer.ema.decay=1", "optimizer: ema.decay is 1"},
      {"train.micro_batch_size=0", "train.micro_batch_size: 0"},
      {"eval.micro_batch_size=8", "eval.micro_batch_size: is for training"},
      {"model.loss={ sparse_categorical_crossentropy {} "
       "class_weight { class: 10 weight: 1 } }",
       "model.loss.class_weight[0].class: 10 is not a class from 0 to 9"},
      {"model.layer[1].optimizer.adam.beta_1=2",
       "model.layer[1]: optimizer: adam.beta_1 is 2"},
      {"model.layer[1].optimizer={ sgd {} reduce_on_plateau {} }",
       "model.layer[1].optimizer.reduce_on_plateau: a layer's own rate"},
      {"model.layer[1].optimizer={ sgd {} learning_rate_by_global_batch { "
       "batch: 8 } }",
       "model.layer[1]: optimizer: learning_rate_by_global_batch: 1 batches"},
      {"model.layer[1].optimizer={}",
       "model.layer[1]: optimizer: none is chosen"},
      {"model.layer[1].learning_rate_multiplier=0",
       "model.layer[1] \"dense_1\": learning_rate_multiplier: 0"},
      {"warm_start={}", "warm_start.checkpoint"},
      {"warm_start={ checkpoint: 'a' map { from: 'a/' to: 'b' } }",
       "warm_start.map[0]: from \"a/\" to \"b\": both are names"},
      {"warm_start={ checkpoint: 'a' map {} }", "warm_start.map[0]: from \"\""},
  });
  for (const char* const override :
       {"warm_start={ checkpoint: 'a' map { from: 'model/' } exclude: 'b' }",
        "optimizer.ema={}", "train.micro_batch_size=1000",
        "model.layer[1].optimizer={ ftrl {} ema {} clipnorm: 1 }",
        "model.layer[1].trainable=false",
        "model.loss={ sparse_categorical_crossentropy {} "
        "class_weight { class: 9 weight: 0 } }"}) {
    SCOPED_TRACE(override);
    job::Job job = Good();
    ASSERT_OK(ApplyOverride(job, override));
    EXPECT_OK(Validate(job));
  }
}

TEST(ValidateTest, AnEndOrCheckpointOutsideItsRangeIsNamed) {
  ExpectFaults({
      {"end={}", "end: neither"},
      {"end.steps=0", "end.steps: 0"},
      {"end.epochs=0", "end.epochs: 0"},
      {"end={ epochs: inf }", "end.epochs: inf"},
      {"checkpoint.directory=", "checkpoint.directory"},
      {"checkpoint.every_steps=0", "checkpoint.every_steps: 0"},
      {"checkpoint.every_seconds=0", "checkpoint.every_seconds: 0"},
      {"checkpoint.every_seconds=1e10", "checkpoint.every_seconds: 1e+10"},
      {"checkpoint.max_to_keep=0", "checkpoint.max_to_keep: 0"},
      {"checkpoint.full_every=0", "checkpoint.full_every: 0"},
      {"checkpoint.full_every=101", "checkpoint.full_every: 101"},
      {"checkpoint.keep_every_hours=0", "checkpoint.keep_every_hours: 0"},
      {"checkpoint.keep_every_hours=1e10",
       "checkpoint.keep_every_hours: 1e+10"},
  });
}

TEST(ValidateTest, WhatStandsAgainstASetThatGrowsIsNamed) {
  job::Job job = Good();
  ASSERT_OK(ApplyOverride(job, "end={ never {} }"));
  EXPECT_OK(Validate(job));
  ASSERT_OK(ApplyOverride(job, "end.steps=5"));
  EXPECT_THAT(Validate(job), IsFault("end.never: the job has steps"));
  ExpectFaults({
      {"train.follow=true", "train.follow: this format"},
      {"eval.follow=true", "eval.follow: only train"},
  });
  job = Good();
  ASSERT_OK(
      ApplyOverride(job,
                    "train={ cifar { file: 'c/*' } follow: true batch_size: 4 "
                    "prefetch_batches: 2 decode_threads: 2 }"));
  ASSERT_OK(ApplyOverride(job, "end={ never {} }"));
  EXPECT_OK(Validate(job));
  const std::vector<FaultyOverride> cases = {
      {"end={ epochs: 2 }", "end.epochs: a set that grows"},
      {"train.split={ to: .5 }", "train.split: a set that grows"},
      {"train.auto_shard=FILE", "train.auto_shard: FILE gives"},
      {"train.cifar.file[0]=s3://b/c", "train.follow: s3://b/c: object stores"},
  };
  for (const FaultyOverride& c : cases) {
    SCOPED_TRACE(c.override);
    job::Job faulty = job;
    ASSERT_OK(ApplyOverride(faulty, c.override));
    EXPECT_THAT(Validate(faulty), IsFault(c.fault));
  }
}

TEST(ValidateTest, ATopicIsATrainingSetThatGrowsWithoutAHeader) {
  job::Job job = ParseJob(R"pb(
                            model {
                              input {
                                name: "x"
                                dense { column { name: "a" } }
                              }
                              layer {
                                input: "x"
                                dense { units: 1 }
                              }
                              loss { mean_squared_error {} }
                            }
                            train {
                              csv {
                                file: "kafka://b:9092/t"
                                column: [ "a", "b" ]
                                label { column: "b" }
                              }
                              follow: true
                            }
                            eval { csv { file: "c.csv" } }
                            optimizer { adam {} }
                            end { never {} }
                          )pb",
                          "topic")
                     .value();
  FillDefaults(job);
  EXPECT_OK(Validate(job));
  const auto with = [&job](const std::function<void(job::Job&)>& change) {
    job::Job changed = job;
    change(changed);
    return Validate(changed);
  };
  const auto named = [&with](const std::string& file) {
    return with([&](job::Job& changed) {
      changed.mutable_train()->mutable_csv()->set_file(0, file);
    });
  };
  EXPECT_THAT(named("kafka://b/t"),
              IsFault("train.follow: kafka://b/t: a broker is not host:port"));
  EXPECT_THAT(named("kafka://me:secret@b:9092/t"),
              IsFault("train.follow: kafka://: a topic's name has no cred"));
  EXPECT_THAT(with([](job::Job& changed) {
                changed.mutable_train()->mutable_csv()->clear_column();
              }),
              IsFault("train.csv.column: a topic has no header"));
  EXPECT_THAT(with([](job::Job& changed) {
                changed.mutable_train()->mutable_csv()->set_skip_lines(1);
              }),
              IsFault("train.csv.skip_lines: a topic has no lines"));
  EXPECT_THAT(with([](job::Job& changed) {
                changed.mutable_train()->mutable_csv()->add_file("c/*");
              }),
              IsFault("train.follow: kafka://b:9092/t: a set is one topic"));
  EXPECT_THAT(with([](job::Job& changed) {
                job::ParquetDataset& parquet =
                    *changed.mutable_train()->mutable_parquet();
                parquet.add_file("kafka://b:9092/t");
                parquet.mutable_label()->set_column("b");
              }),
              IsFault("train.follow: kafka://b:9092/t: records of a topic"));
  EXPECT_THAT(with([](job::Job& changed) {
                changed.mutable_eval()->mutable_csv()->set_file(
                    0, "kafka://b:9092/t");
              }),
              IsFault("eval: kafka://b:9092/t: a topic has no end"));
}

TEST(ValidateTest, APartitionerOutsideItsRangeIsNamed) {
  ExpectFaults({
      {"parameter_server.fixed_shards={}",
       "parameter_server.fixed_shards.shards: 0"},
      {"parameter_server.min_size.min_shard_bytes=0",
       "parameter_server.min_size.min_shard_bytes: 0"},
      {"parameter_server.min_size.max_shards=-1",
       "parameter_server.min_size.max_shards: -1"},
      {"parameter_server.max_size={}",
       "parameter_server.max_size.max_shard_bytes: 0"},
      {"parameter_server={}", "parameter_server: no partitioner"},
  });
}

TEST(ValidateTest, ConsistencyAndExchangeHaveTheirRanges) {
  struct Case {
    std::string strategy;
    std::string fault;  // empty: none
  };
  const std::string path = "parameter_server.";
  const Case cases[] = {
      {"asynchronous {}", ""},
      {"bounded_staleness { bound: 0 }", ""},
      {"bounded_staleness {}", path + "bounded_staleness.bound: is not set"},
      {"bounded_staleness { bound: -1 }", path + "bounded_staleness.bound: -1"},
      {"synchronous {}", ""},
      {"synchronous { replicas_to_aggregate: 2 total_replicas: 3 }", ""},
      {"synchronous { replicas_to_aggregate: 3 total_replicas: 2 }",
       path + "synchronous.replicas_to_aggregate: 3 is not in 1 to 2"},
      {"synchronous { replicas_to_aggregate: 0 }",
       path + "synchronous.replicas_to_aggregate: 0"},
      {"synchronous { total_replicas: 0 }",
       path + "synchronous.total_replicas: 0"},
      {"synchronous { total_replicas: 5000 }",
       path + "synchronous.total_replicas: 5000"},
      {"wire_encoding: BFLOAT16", ""},
      {"push_share: 0.01", ""},
      {"push_share: 0", path + "push_share: 0"},
      {"push_share: 1.5", path + "push_share: 1.5"},
      {"push_share: nan", path + "push_share: nan"},
      {"push_share: 0.5 synchronous {}", path + "push_share: 0.5 leaves"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.strategy);
    job::Job job = Good();
    ASSERT_OK(ApplyOverride(
        job, absl::StrCat("parameter_server={ ", c.strategy, " }")));
    FillDefaults(job);
    if (c.fault.empty()) {
      EXPECT_OK(Validate(job));
    } else {
      EXPECT_THAT(Validate(job), IsFault(c.fault));
    }
  }
}

TEST(ValidateTest, AWorkersNicenessIsOneThatThreadsMayHave) {
  job::Job job = Good();
  for (const int niceness : {0, 19}) {
    job.mutable_worker()->set_compute_niceness(niceness);
    EXPECT_OK(Validate(job));
  }
  for (const int niceness : {-1, 20}) {
    job.mutable_worker()->set_compute_niceness(niceness);
    EXPECT_THAT(Validate(job),
                IsFault(absl::StrCat("worker.compute_niceness: ", niceness)));
  }
}

TEST(ValidateTest, ASparseTableHasANameAWidthAndAnInitializerWithoutAShape) {
  struct Case {
    std::string table;
    std::string fault;  // after the path; empty: none
  };
  const Case cases[] = {
      {"name: 'users/embedding' width: 16", ""},
      {"name: 't' width: 65536 optimizer { sgd {} }", ""},
      {"width: 16", ".name: is not set"},
      {"name: 'a b' width: 16", ".name: \"a b\""},
      {"name: 'dense_1/kernel' width: 16",
       ".name: dense_1/kernel appears twice"},
      {"name: 't'", ".width: is not set"},
      {"name: 't' width: 0", ".width: 0"},
      {"name: 't' width: 65537", ".width: 65537"},
      {"name: 't' width: 1 admission {}", ".admission.min_count: is not set"},
      {"name: 't' width: 1 admission { min_count: 0 }",
       ".admission.min_count: 0 is not"},
      {"name: 't' width: 1 admission { min_count: 1 }",
       ".admission.min_count: 1 is not"},
      {"name: 't' width: 1 admission { min_count: 2 }", ""},
      {"name: 't' width: 1 eviction {}", ".eviction: says nothing"},
      {"name: 't' width: 1 eviction { idle_steps: 0 }",
       ".eviction.idle_steps: 0 is not"},
      {"name: 't' width: 1 eviction { max_rows: 1000 }",
       ".eviction.max_rows: 1000 is not"},
      {"name: 't' width: 1 trainable: false admission { min_count: 2 }",
       ".admission: the table is not trainable"},
      {"name: 't' width: 1 tier {}", ".tier.memory_bytes: is not set"},
      {"name: 't' width: 1 tier { memory_bytes: 1000 }",
       ".tier.memory_bytes: 1000 is not"},
      {"name: 't' width: 1 tier { memory_bytes: 100000000 } "
       "optimizer { adam {} }",
       ".tier: with its optimizer each push changes all rows"},
      {"name: 't' width: 1 tier { memory_bytes: 100000000 } "
       "optimizer { lazy_adam {} }",
       ""},
      {"name: 't' width: 1 learning_rate_multiplier: -1",
       ".learning_rate_multiplier: -1"},
      {"name: 't' width: 1 optimizer { sgd {} ema {} }",
       ".optimizer.ema: rows have no average"},
      {"name: 't' width: 1 initializer { random_normal { stddev: -1 } }",
       ".initializer: random_normal.stddev: -1"},
      {"name: 't' width: 1 initializer { glorot_uniform {} }",
       ".initializer: a table has no shape"},
      {"name: 't' width: 1 optimizer {}", ": optimizer: none is chosen"},
      {"name: 't' width: 1 optimizer { sgd { momentum: 2 } }",
       ": optimizer: sgd.momentum is 2"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.table);
    ASSERT_OK_AND_ASSIGN(
        const job::Job tables,
        ParseJob(absl::StrCat("model { sparse_table { ", c.table, " } }"),
                 "tables"));
    job::Job job = Good();
    *job.mutable_model()->mutable_sparse_table() =
        tables.model().sparse_table();
    FillDefaults(job);
    if (c.fault.empty()) {
      EXPECT_OK(Validate(job));
    } else {
      EXPECT_THAT(Validate(job), IsFault("model.sparse_table[0]" + c.fault));
    }
  }
}

TEST(ValidateTest, RequiredPartsAreNamed) {
  job::Job job = Good();
  job.clear_model();
  EXPECT_THAT(Validate(job), IsFault("model: is not set"));
  job = Good();
  job.clear_train();
  EXPECT_THAT(Validate(job), IsFault("train: is not set"));
  job = Good();
  job.mutable_train()->clear_idx();
  EXPECT_THAT(Validate(job), IsFault("train: no format is chosen"));
  job = Good();
  job.clear_optimizer();
  EXPECT_THAT(Validate(job), IsFault("optimizer: none is chosen"));
  job = Good();
  job.clear_end();
  EXPECT_THAT(Validate(job), IsFault("end: neither"));
  job = Good();
  job.mutable_model()->clear_layer();
  EXPECT_THAT(Validate(job), IsFault("model"));
  job = Good();
  job.mutable_model()->clear_input_shape();
  EXPECT_THAT(Validate(job), IsFault("model.input_shape"));
  job = Good();
  job.mutable_model()->mutable_layer(1)->mutable_dense()->clear_units();
  EXPECT_THAT(Validate(job), IsFault("model.layer[1].dense.units: is not set"));
}

TEST(ValidateTest, ReplicasThatAreAveragedAreNotClipped) {
  job::Job job = Good();
  auto& synchronous = *job.mutable_parameter_server()->mutable_synchronous();
  EXPECT_OK(Validate(job));
  for (const std::string field : {"clipvalue", "clipnorm", "global_clipnorm"}) {
    job::Job clipped = job;
    ASSERT_OK(ApplyOverride(clipped, "optimizer." + field + "=1"));
    EXPECT_THAT(Validate(clipped), IsFault("optimizer." + field +
                                           ": gradients "
                                           "are clipped before"));
  }
  synchronous.set_replicas_to_aggregate(1);
  ASSERT_OK(ApplyOverride(job, "optimizer.clipnorm=1"));
  EXPECT_OK(Validate(job));
}

TEST(ValidateTest, ATablesOptimizerClipsWhereTheJobsMay) {
  for (const std::string field : {"clipvalue", "clipnorm", "global_clipnorm"}) {
    const std::string path = "model.sparse_table[0].optimizer." + field;
    job::Job job = Good();
    job::SparseTable& table = *job.mutable_model()->add_sparse_table();
    table.set_name("ids");
    table.set_width(4);
    table.mutable_optimizer()->mutable_sgd();
    FillDefaults(job);
    ASSERT_OK(ApplyOverride(job, path + "=1"));
    EXPECT_OK(Validate(job));
    job.mutable_parameter_server()->mutable_synchronous();
    EXPECT_THAT(Validate(job),
                IsFault(path + ": gradients are clipped before"));
  }
}

// A table that is frozen, or has another optimizer, needs no norms.
TEST(ValidateTest, LambIsForWholeVariables) {
  job::Job job = Good();
  ASSERT_OK(ApplyOverride(job, "optimizer.lamb={}"));
  EXPECT_OK(Validate(job));
  job::Job by_ps = job;
  ASSERT_OK(ApplyOverride(by_ps, "strategy.parameter_server={}"));
  EXPECT_THAT(Validate(by_ps), IsFault("optimizer.lamb: a step of LAMB"));
  job::SparseTable& table = *job.mutable_model()->add_sparse_table();
  table.set_name("ids");
  table.set_width(4);
  FillDefaults(job);
  const std::string fault =
      "model.sparse_table[0].optimizer: a step of LAMB needs the norms of all "
      "rows";
  EXPECT_THAT(Validate(job), IsFault(fault));
  table.set_trainable(false);
  EXPECT_OK(Validate(job));
  table.set_trainable(true);
  table.mutable_optimizer()->mutable_lazy_adam();
  FillDefaults(job);
  EXPECT_OK(Validate(job));
  table.mutable_optimizer()->mutable_lamb();
  EXPECT_THAT(Validate(job), IsFault(fault));
}

TEST(ValidateTest, RowwiseAdagradIsForTablesAlone) {
  job::Job job = Good();
  job::SparseTable& table = *job.mutable_model()->add_sparse_table();
  table.set_name("ids");
  table.set_width(4);
  table.mutable_optimizer()->mutable_rowwise_adagrad();
  table.mutable_tier()->set_memory_bytes(int64_t{1} << 30);
  FillDefaults(job);
  EXPECT_OK(Validate(job));
  ASSERT_OK(ApplyOverride(
      job, "model.sparse_table[0].optimizer.rowwise_adagrad={ epsilon: 0 }"));
  EXPECT_THAT(Validate(job),
              IsFault("model.sparse_table[0]: optimizer: "
                      "rowwise_adagrad.epsilon is 0; it must be a float32 "
                      "above 0"));
  const std::string why = "rowwise_adagrad: is for rows of tables alone";
  job::Job of_all = Good();
  ASSERT_OK(ApplyOverride(of_all, "optimizer.rowwise_adagrad={}"));
  EXPECT_THAT(Validate(of_all), IsFault("optimizer." + why));
  job::Job of_layer = Good();
  of_layer.mutable_model()
      ->mutable_layer(1)
      ->mutable_optimizer()
      ->mutable_rowwise_adagrad();
  FillDefaults(of_layer);
  EXPECT_THAT(Validate(of_layer),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model.layer[1]"),
                             HasSubstr("optimizer." + why))));
}

TEST(ValidateTest, HistogramsAreWrittenAtEvaluations) {
  job::Job job = Good();
  ASSERT_TRUE(job.has_eval());
  job.set_tensorboard_histograms(true);
  EXPECT_OK(Validate(job));
  job.set_tensorboard(false);
  EXPECT_THAT(Validate(job), IsFault("tensorboard_histograms: they are in"));
  job.set_tensorboard(true);
  job.clear_eval();
  EXPECT_THAT(Validate(job), IsFault("tensorboard_histograms: they are written"
                                     " at evaluations"));
}

TEST(ValidateTest, EvaluationIsOptional) {
  job::Job job = Good();
  job.clear_eval();
  EXPECT_OK(Validate(job));
}

}  // namespace
}  // namespace parasol

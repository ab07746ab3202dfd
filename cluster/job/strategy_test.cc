#include "cluster/job/strategy.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/durability.h"
#include "cluster/job/job_file.h"
#include "cluster/job/validate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/device/device_group.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

job::Job JobWith(const std::string& strategy) {
  job::Job job;
  if (!strategy.empty()) {
    job = *ParseJob(absl::StrCat("strategy { ", strategy, " }"), "f");
  }
  FillDefaults(job);
  return job;
}

TEST(StrategyTest, AJobWithoutOneTrainsOnTheDeviceOfTheFlag) {
  for (const char* strategy : {"", "default {}"}) {
    ASSERT_OK_AND_ASSIGN(const ProcessReplicas replicas,
                         ResolveProcessReplicas(JobWith(strategy), "auto"));
    EXPECT_EQ(replicas.strategy, StrategyKind::kDefault);
    EXPECT_THAT(replicas.devices, ElementsAre("auto"));
  }
}

TEST(StrategyTest, MirroredHasAReplicaOnEachDevice) {
  ASSERT_OK_AND_ASSIGN(
      const ProcessReplicas replicas,
      ResolveProcessReplicas(
          JobWith("mirrored { device: '/cpu:0' device: 'CPU:1' "
                  "cross_device_ops: REDUCTION_TO_ONE_DEVICE }"),
          "auto"));
  EXPECT_EQ(replicas.strategy, StrategyKind::kMirrored);
  EXPECT_THAT(replicas.devices, ElementsAre("cpu:0", "cpu:1"));
}

TEST(StrategyTest, NcclSumsBetweenCudaDevicesWhereItIs) {
  if (Device::CudaNames().empty()) GTEST_SKIP() << "no CUDA device here";
  const auto replicas = ResolveProcessReplicas(
      JobWith("mirrored { cross_device_ops: NCCL }"), "auto");
  if (!DeviceGroup::CheckNccl().ok()) {
    EXPECT_THAT(replicas,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("install NCCL 2, or choose HIERARCHICAL")));
    return;
  }
  ASSERT_OK(replicas);
}

TEST(StrategyTest, WithoutAListAllCudaDevicesOrTheProcessorAreTaken) {
  std::vector<std::string> expected = Device::CudaNames();
  if (expected.empty()) expected = {"cpu:0"};
  for (const char* strategy :
       {"mirrored {}", "central_storage {}", "multi_worker_mirrored {}"}) {
    ASSERT_OK_AND_ASSIGN(const ProcessReplicas replicas,
                         ResolveProcessReplicas(JobWith(strategy), "auto"));
    EXPECT_EQ(replicas.devices, expected);
  }
}

TEST(StrategyTest, OneDeviceIsTheOneThatItNames) {
  ASSERT_OK_AND_ASSIGN(
      const ProcessReplicas replicas,
      ResolveProcessReplicas(JobWith("one_device { device: 'cpu' }"), "cpu:0"));
  EXPECT_THAT(replicas.devices, ElementsAre("cpu:0"));
}

TEST(StrategyTest, TheFlagNamesTheDeviceWhereTheStrategyNamesNone) {
  for (const char* strategy :
       {"one_device {}", "mirrored {}", "central_storage {}"}) {
    ASSERT_OK_AND_ASSIGN(const ProcessReplicas replicas,
                         ResolveProcessReplicas(JobWith(strategy), "cpu:1"));
    EXPECT_THAT(replicas.devices, ElementsAre("cpu:1")) << strategy;
  }
}

TEST(StrategyTest, WhatCannotBeIsNamed) {
  const struct {
    const char* job;
    const char* device;
    const char* want;
  } kCases[] = {
      {"strategy { parameter_server {} }", "auto", "needs a cluster with ps"},
      {"strategy { one_device {} }", "auto",
       "strategy.one_device.device: is not set, but needed; choose one with "
       "--device=cpu, or with --set=strategy.one_device.device=cpu:0"},
      {"strategy { one_device { device: 'tpu:0' } }", "auto",
       "strategy.one_device.device: \"tpu:0\": there is no such device"},
      {"strategy { one_device { device: 'cpu:0' } }", "cpu:1",
       "--device=cpu:1: strategy.one_device names the devices"},
      {"strategy { mirrored { device: 'cpu:0' device: 'cuda:999' } }", "auto",
       "strategy.mirrored.device[1]: \"cuda:999\": this "},
      {"strategy { mirrored { device: 'cpu' device: '/cpu:0' } }", "auto",
       "strategy.mirrored.device[1]: cpu:0 appears twice"},
      {"strategy { mirrored { device: 'cpu:0' cross_device_ops: NCCL } }",
       "auto",
       "strategy.mirrored.cross_device_ops: NCCL sums between CUDA devices, "
       "and cpu:0 is none; choose HIERARCHICAL_COPY"},
      {"strategy { mirrored { cross_device_ops: NCCL } }", "cpu",
       "strategy.mirrored.cross_device_ops: NCCL sums between CUDA devices, "
       "and cpu is none; choose HIERARCHICAL_COPY"},
      {"strategy { mirrored { device: 'cpu:0' device: 'cpu:1' } }", "cpu",
       "--device=cpu: strategy.mirrored names the devices"},
      {"strategy { mirrored { device: 'cpu:0' device: 'cpu:1' } } "
       "optimizer { sgd {} clipnorm: 1 }",
       "auto",
       "optimizer.clipnorm: 1, but gradients are clipped before they are "
       "averaged, not after as in Keras: with several replicas leave clipnorm "
       "out"},
      {"strategy { central_storage { device: 'cpu:0' device: 'cpu:1' } } "
       "model { sparse_table { optimizer { sgd {} clipvalue: 1 } } }",
       "auto",
       "model.sparse_table[0].optimizer.clipvalue: 1, but gradients are "
       "clipped"},
      {"strategy { multi_worker_mirrored { communication: NCCL } }", "cpu",
       "strategy.multi_worker_mirrored.communication: NCCL sums between CUDA "
       "devices, and cpu is none; choose AUTO"},
  };
  for (const auto& test : kCases) {
    ASSERT_OK_AND_ASSIGN(job::Job job, ParseJob(test.job, "f"));
    FillDefaults(job);
    EXPECT_THAT(
        ResolveProcessReplicas(job, test.device),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.want)))
        << test.job;
  }
}

TEST(StrategyTest, TheFlagReplacesAnotherStrategyAndKeepsTheSame) {
  job::Job job = JobWith("mirrored { device: 'cpu:0' device: 'cpu:1' }");
  ChooseStrategy(StrategyKind::kMirrored, job);
  EXPECT_EQ(job.strategy().mirrored().device_size(), 2);
  for (const StrategyKind kind :
       {StrategyKind::kParameterServer, StrategyKind::kDefault,
        StrategyKind::kOneDevice, StrategyKind::kCentralStorage,
        StrategyKind::kMultiWorkerMirrored, StrategyKind::kHybrid,
        StrategyKind::kMirrored}) {
    ChooseStrategy(kind, job);
    EXPECT_EQ(StrategyOf(job), kind);
  }
  EXPECT_EQ(job.strategy().mirrored().device_size(), 0);
}

TEST(StrategyTest, AClusterIsTrainedByWhatItsTasksAreFor) {
  struct Case {
    std::string strategy;
    int num_ps;
    std::optional<StrategyKind> flag;
    StrategyKind want;
  };
  const std::optional<StrategyKind> none;
  const Case cases[] = {
      {"parameter_server {}", 1, none, StrategyKind::kParameterServer},
      {"", 0, none, StrategyKind::kMultiWorkerMirrored},
      {"multi_worker_mirrored {}", 0, none, StrategyKind::kMultiWorkerMirrored},
      {"mirrored {}", 0, StrategyKind::kMultiWorkerMirrored,
       StrategyKind::kMultiWorkerMirrored},
      {"multi_worker_mirrored {}", 2, StrategyKind::kParameterServer,
       StrategyKind::kParameterServer},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(absl::StrCat(test.strategy, ", ", test.num_ps, " ps"));
    job::Job job = JobWith(test.strategy);
    ASSERT_OK(ResolveClusterStrategy(test.flag, test.num_ps, job));
    EXPECT_EQ(StrategyOf(job), test.want);
  }
  job::Job plain = JobWith("");
  ASSERT_OK(ResolveClusterStrategy(none, 1, plain));
  EXPECT_EQ(StrategyOf(plain), std::nullopt);
}

TEST(StrategyTest, AClusterOfOtherTasksThanTheStrategyNeedsIsRefused) {
  struct Case {
    std::string strategy;
    int num_ps;
    std::string want;
  };
  const Case cases[] = {
      {"mirrored {}", 1, "strategy.mirrored trains in one process"},
      {"mirrored {}", 0, "strategy.mirrored trains in one process"},
      {"parameter_server {}", 0,
       "strategy.parameter_server: the cluster has no ps"},
      {"multi_worker_mirrored {}", 2,
       "strategy.multi_worker_mirrored: the cluster has 2 ps"},
      {"hybrid {}", 0, "strategy.hybrid: the cluster has no ps"},
      {"hybrid {}", 2, "strategy.hybrid: the model has no sparse table"},
  };
  for (const Case& test : cases) {
    job::Job job = JobWith(test.strategy);
    EXPECT_THAT(
        ResolveClusterStrategy(std::nullopt, test.num_ps, job),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.want)));
  }
  job::Job clips = JobWith("");
  clips.mutable_optimizer()->set_clipnorm(1);
  EXPECT_THAT(ResolveClusterStrategy(std::nullopt, 0, clips),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gradients are clipped before")));
}

// Hybrid's ps have tables alone.
TEST(StrategyTest, OnlyWorkersThatAreNotInStepFollowASetThatGrows) {
  const auto follows = [](job::Job job) {
    job.mutable_train()->set_follow(true);
    job.mutable_model()->add_sparse_table();
    return job;
  };
  job::Job by_ps = follows(JobWith("parameter_server {}"));
  EXPECT_OK(ResolveClusterStrategy(std::nullopt, 1, by_ps));
  by_ps.mutable_parameter_server()->mutable_bounded_staleness();
  EXPECT_OK(ResolveClusterStrategy(std::nullopt, 1, by_ps));
  by_ps.mutable_parameter_server()->mutable_synchronous();
  EXPECT_THAT(ResolveClusterStrategy(std::nullopt, 1, by_ps),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("parameter_server.synchronous")));
  for (const char* strategy : {"multi_worker_mirrored {}", "hybrid {}"}) {
    job::Job job = follows(JobWith(strategy));
    EXPECT_THAT(ResolveClusterStrategy(std::nullopt, *strategy == 'h', job),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("train.follow: needs workers")));
  }
  EXPECT_THAT(ResolveProcessReplicas(follows(JobWith("")), "auto").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("train.follow: needs a cluster")));
}

TEST(StrategyTest, PsCannotUpdateByNormsOfWholeVariables) {
  for (const bool has_lamb : {true, false}) {
    SCOPED_TRACE(has_lamb);
    job::Job job = JobWith("");
    if (has_lamb) job.mutable_optimizer()->mutable_lamb();
    job.mutable_model()->add_sparse_table()->set_name("users");
    const auto resolve = [&](StrategyKind kind, int num_ps) {
      job::Job resolved = job;
      return ResolveClusterStrategy(kind, num_ps, resolved);
    };
    EXPECT_OK(resolve(StrategyKind::kHybrid, 2));
    EXPECT_OK(resolve(StrategyKind::kMultiWorkerMirrored, 0));
    const absl::Status by_ps = resolve(StrategyKind::kParameterServer, 2);
    EXPECT_EQ(ResolveClusterStrategy(std::nullopt, 2, job), by_ps);
    if (!has_lamb) {
      EXPECT_OK(by_ps);
      continue;
    }
    EXPECT_THAT(by_ps,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("optimizer.lamb: a step of LAMB"),
                               HasSubstr("strategy.multi_worker_mirrored"))));
  }
}

TEST(StrategyTest, OnlyPsHaveTablesWithATier) {
  job::Job job = JobWith("");
  job.mutable_model()->add_sparse_table()->set_name("users");
  job.mutable_model()->mutable_sparse_table(0)->mutable_tier();
  const auto is_refused =
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("model.sparse_table[0].tier: tables of workers"));
  for (const StrategyKind kind :
       {StrategyKind::kParameterServer, StrategyKind::kHybrid}) {
    job::Job resolved = job;
    EXPECT_OK(ResolveClusterStrategy(kind, 2, resolved));
  }
  job::Job resolved = job;
  EXPECT_THAT(ResolveClusterStrategy(std::nullopt, 0, resolved), is_refused);
  EXPECT_THAT(ResolveProcessReplicas(job, "auto").status(), is_refused);
}

TEST(StrategyTest, OnlyPsKeepValuesInBfloat16) {
  job::Job job = JobWith("");
  job::SparseTable& table = *job.mutable_model()->add_sparse_table();
  table.set_name("users");
  table.set_values(job::SparseTable::BFLOAT16);
  for (const StrategyKind kind :
       {StrategyKind::kParameterServer, StrategyKind::kHybrid}) {
    job::Job resolved = job;
    EXPECT_OK(ResolveClusterStrategy(kind, 2, resolved));
  }
  const auto is_refused = StatusIs(
      absl::StatusCode::kInvalidArgument,
      HasSubstr("model.sparse_table[0].values: is BFLOAT16, but tables of "
                "workers have float32; leave it out, or train with ps"));
  job::Job resolved = job;
  EXPECT_THAT(ResolveClusterStrategy(std::nullopt, 0, resolved), is_refused);
  EXPECT_THAT(ResolveProcessReplicas(job, "auto").status(), is_refused);
  job.mutable_model()->mutable_sparse_table(0)->set_values(
      job::SparseTable::FLOAT32);
  EXPECT_OK(ResolveProcessReplicas(job, "auto").status());
}

TEST(StrategyTest, OnlyPsTakeFragmentsOfAnExchange) {
  for (const std::string field : {"fragments", "overlap_steps"}) {
    job::Job job = JobWith("");
    job::LocalSteps& steps =
        *job.mutable_parameter_server()->mutable_local_steps();
    steps.set_steps(10);
    field == "fragments" ? steps.set_fragments(2) : steps.set_overlap_steps(1);
    EXPECT_TRUE(StreamsFragments(job));
    job::Job resolved = job;
    EXPECT_OK(ResolveClusterStrategy(std::nullopt, 2, resolved));
    resolved = job;
    EXPECT_THAT(ResolveClusterStrategy(std::nullopt, 0, resolved),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("local_steps." + field + ": workers")));
    EXPECT_OK(ResolveProcessReplicas(job, "auto"));
    ChooseStrategy(StrategyKind::kMultiWorkerMirrored, job);
    EXPECT_FALSE(ResolveProcessReplicas(job, "auto").ok());
  }
}

TEST(StrategyTest, HybridNeedsTablesAndVariables) {
  job::Job job = JobWith("hybrid {}");
  job.mutable_model()->add_sparse_table()->set_name("users");
  EXPECT_OK(ResolveClusterStrategy(std::nullopt, 2, job));
  EXPECT_OK(CheckHasVariables(job, 1));
  EXPECT_THAT(CheckHasVariables(job, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("choose --strategy=parameter_server")));
  EXPECT_OK(CheckHasVariables(JobWith("parameter_server {}"), 0));
  job.mutable_model()
      ->mutable_sparse_table(0)
      ->mutable_optimizer()
      ->set_clipvalue(1);
  EXPECT_THAT(ResolveClusterStrategy(std::nullopt, 2, job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gradients are clipped before")));
  EXPECT_THAT(ResolveProcessReplicas(job, "auto"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("strategy.hybrid: needs a cluster")));
}

TEST(StrategyTest, TablesAreInStepUnlessTheJobSaysOtherwise) {
  job::Job job = JobWith("hybrid {}");
  EXPECT_FALSE(HasTablesInStep(job));  // of a cluster that is not known yet
  ASSERT_OK(FillClusterDefaults(job, 3));
  EXPECT_TRUE(HasTablesInStep(job));
  EXPECT_EQ(job.parameter_server().synchronous().total_replicas(), 3);
  EXPECT_EQ(AllReduceOf(job)->bytes_per_pack(), 1 << 20);
  job.mutable_strategy()->mutable_hybrid()->set_tables(
      job::Hybrid::ASYNCHRONOUS);
  EXPECT_FALSE(HasTablesInStep(job));
  EXPECT_EQ(AllReduceOf(JobWith("parameter_server {}")), nullptr);
}

// The settings that list the devices of a cluster's workers.
const std::pair<const char*, const char*> kListsOfWorkers[] = {
    {"strategy.multi_worker_mirrored", "multi_worker_mirrored { $0 }"},
    {"strategy.hybrid.all_reduce", "hybrid { all_reduce { $0 } }"}};

constexpr char kTables[] = R"(
    name: 'tables'
    model {
      input { name: 'x' ids {} }
      layer { name: 'rows' embedding_bag { table: 't' } }
      layer { name: 'y' dense { units: 1 } }
      loss { binary_crossentropy {} }
      sparse_table { name: 't' width: 2 optimizer { sgd {} } }
    }
    train { libsvm { file: 'f' } batch_size: 8 micro_batch_size: 3 }
    optimizer { sgd {} }
    end { steps: 9 }
    strategy { )";

// Gradients of rows travel through the host beside NCCL's sums.
TEST(StrategyTest, NcclBetweenWorkersTakesTablesButNoClipping) {
  for (const auto& [path, strategy] : kListsOfWorkers) {
    SCOPED_TRACE(path);
    ASSERT_OK_AND_ASSIGN(
        job::Job job,
        ParseJob(absl::StrCat(kTables,
                              absl::Substitute(strategy, "communication: NCCL"),
                              " }"),
                 "f"));
    FillDefaults(job);
    EXPECT_OK(Validate(job));
    const int num_ps = absl::StrContains(path, "hybrid") ? 1 : 0;
    EXPECT_OK(ResolveClusterStrategy(std::nullopt, num_ps, job));
    job::Job by_table = job;
    job.mutable_optimizer()->set_clipnorm(1);
    EXPECT_THAT(ResolveClusterStrategy(std::nullopt, num_ps, job),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         StartsWith("optimizer.clipnorm: 1, but gradients")));
    by_table.mutable_model()
        ->mutable_sparse_table(0)
        ->mutable_optimizer()
        ->set_clipvalue(1);
    EXPECT_THAT(
        ResolveClusterStrategy(std::nullopt, num_ps, by_table),
        StatusIs(
            absl::StatusCode::kInvalidArgument,
            StartsWith("model.sparse_table[0].optimizer.clipvalue: 1, but")));
  }
}

TEST(StrategyTest, AListOfBothKindsOfDevicesHasNoNccl) {
  const std::string both = "device: '/gpu:1' device: 'CPU:1' ";
  for (const auto& [path, strategy] : kListsOfWorkers) {
    SCOPED_TRACE(path);
    const auto validate = [strategy](const std::string& settings) {
      absl::StatusOr<job::Job> job = ParseJob(
          absl::StrCat(kTables, absl::Substitute(strategy, settings), " }"),
          "f");
      EXPECT_OK(job);
      FillDefaults(*job);
      return Validate(*job).status();
    };
    EXPECT_OK(validate(both));
    EXPECT_THAT(
        validate(both + "communication: NCCL"),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 absl::StrCat(path,
                              ".device[1]: NCCL sums between CUDA devices, and "
                              "cpu:1 is none; list CUDA devices alone, or "
                              "choose communication: AUTO")));
  }
}

TEST(StrategyTest, WorkersInStepHaveAReplicaOnEachDeviceOfTheirList) {
  for (const auto& [path, strategy] : kListsOfWorkers) {
    SCOPED_TRACE(path);
    job::Job job =
        JobWith(absl::Substitute(strategy, "device: '/cpu:0' device: 'CPU:1'"));
    job.mutable_train()->set_global_batch_size(12);
    job.mutable_optimizer()->mutable_sgd();
    job::LearningRateByGlobalBatch& rate =
        *job.mutable_optimizer()->mutable_learning_rate_by_global_batch();
    rate.set_linear(true);
    rate.add_batch(24);
    rate.add_rate(0.5);
    EXPECT_EQ(ReplicasOfWorker(job), 2);
    ASSERT_OK(FillClusterDefaults(job, 3));
    EXPECT_EQ(job.parameter_server().synchronous().total_replicas(), 6);
    EXPECT_EQ(job.parameter_server().synchronous().replicas_to_aggregate(), 6);
    EXPECT_EQ(job.train().batch_size(), 2);
    EXPECT_FLOAT_EQ(job.optimizer().sgd().learning_rate(), 0.25);
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> devices,
                         ResolveWorkerDevices(job, "auto"));
    EXPECT_THAT(devices, ElementsAre("cpu:0", "cpu:1"));
  }
  job::Job odd =
      JobWith("multi_worker_mirrored { device: 'cpu:0' device: 'cpu:1' }");
  odd.mutable_train()->set_global_batch_size(15);
  EXPECT_THAT(FillClusterDefaults(odd, 3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("15 examples can't be split into 6")));
}

TEST(StrategyTest, WithoutAListTheDeviceOfAWorkerIsThatOfTheFlag) {
  for (const auto& [path, strategy] : kListsOfWorkers) {
    const job::Job job = JobWith(absl::Substitute(strategy, ""));
    EXPECT_EQ(ReplicasOfWorker(job), 1);
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> devices,
                         ResolveWorkerDevices(job, "cpu:1"));
    EXPECT_THAT(devices, ElementsAre("cpu:1"));
  }
  // One that names the only device of the list says the same.
  EXPECT_OK(ResolveWorkerDevices(
      JobWith("multi_worker_mirrored { device: '/cpu:1' }"), "cpu:1"));
  EXPECT_EQ(ReplicasOfWorker(JobWith("mirrored { device: 'cpu:0' }")), 1);
}

TEST(StrategyTest, AListOfWorkersDevicesThatCannotBeIsNamed) {
  const struct {
    const char* devices;
    const char* flag;
    const char* want;  // after the path
  } kCases[] = {
      {"device: 'tpu:0'", "auto", ".device[0]: \"tpu:0\": there is no such"},
      {"device: 'cpu:0' device: '/job:worker/task:1/cpu:0'", "auto",
       ".device[1]: \"/job:worker/task:1/cpu:0\": "},
      {"device: 'cpu' device: '/cpu:0'", "auto",
       ".device[1]: cpu:0 appears twice; a second replica of one processor is "
       "cpu:1"},
      {"device: 'cpu:0' device: 'cuda:999'", "auto",
       ".device[1]: \"cuda:999\": this "},
      {"device: 'cpu:0' device: 'cpu:1'", "cpu",
       " names the devices; leave the flag out, or the strategy"},
  };
  for (const auto& [path, strategy] : kListsOfWorkers) {
    for (const auto& test : kCases) {
      const job::Job job = JobWith(absl::Substitute(strategy, test.devices));
      EXPECT_THAT(ResolveWorkerDevices(job, test.flag),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr(absl::StrCat(path, test.want))));
    }
  }
}

// The list of a cluster's workers serves one without a cluster.
TEST(StrategyTest, AWorkerWithoutAClusterHasTheDevicesOfItsList) {
  ASSERT_OK_AND_ASSIGN(
      const ProcessReplicas replicas,
      ResolveProcessReplicas(
          JobWith("multi_worker_mirrored { device: 'cpu:0' device: 'cpu:1' }"),
          "auto"));
  EXPECT_EQ(replicas.strategy, StrategyKind::kMultiWorkerMirrored);
  EXPECT_THAT(replicas.devices, ElementsAre("cpu:0", "cpu:1"));
}

TEST(StrategyTest, WorkersInStepHaveOneReplicaEach) {
  job::Job job = JobWith("multi_worker_mirrored {}");
  job.mutable_train()->set_global_batch_size(12);
  ASSERT_OK(FillClusterDefaults(job, 3));
  EXPECT_EQ(job.parameter_server().synchronous().total_replicas(), 3);
  EXPECT_EQ(job.parameter_server().synchronous().replicas_to_aggregate(), 3);
  EXPECT_EQ(job.train().batch_size(), 4);
  EXPECT_EQ(job.strategy().multi_worker_mirrored().bytes_per_pack(), 1 << 20);
}

TEST(StrategyTest, PacksOfNcclAreLargerUnlessTheJobSaysOtherwise) {
  job::Job job = JobWith("multi_worker_mirrored { communication: NCCL }");
  ASSERT_OK(FillClusterDefaults(job, 3));
  EXPECT_EQ(AllReduceOf(job)->bytes_per_pack(), 4 << 20);
  job = JobWith("hybrid { all_reduce { communication: NCCL } }");
  ASSERT_OK(FillClusterDefaults(job, 3));
  EXPECT_EQ(AllReduceOf(job)->bytes_per_pack(), 4 << 20);
  job = JobWith(
      "multi_worker_mirrored { communication: NCCL bytes_per_pack: 100 }");
  ASSERT_OK(FillClusterDefaults(job, 3));
  EXPECT_EQ(AllReduceOf(job)->bytes_per_pack(), 100);
}

using Durabilities = job::ParameterServerStrategy;
job::Job JobWith(Durabilities::Durability durability) {
  job::Job job;
  job.mutable_parameter_server()->set_durability(durability);
  return job;
}

TEST(DurabilityTest, AStandbyIsOnAnotherPs) {
  for (const auto one :
       {Durabilities::REPLICATE, Durabilities::REPLICATE_JOURNAL,
        Durabilities::REPLICATE_JOURNAL_SYNC}) {
    EXPECT_TRUE(Replicates(JobWith(one)));
    EXPECT_OK(CheckDurability(JobWith(one), 2));
    EXPECT_THAT(CheckDurability(JobWith(one), 1),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("the cluster has 1; add a ps")));
  }
}

TEST(DurabilityTest, OtherJobsNeedOnePs) {
  for (const auto one : {Durabilities::CHECKPOINT, Durabilities::JOURNAL,
                         Durabilities::JOURNAL_SYNC}) {
    EXPECT_FALSE(Replicates(JobWith(one)));
    EXPECT_OK(CheckDurability(JobWith(one), 1));
  }
}

}  // namespace
}  // namespace parasol

#include "parameters/composition.h"

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace parasol {

// Called by GoogleTest.
void PrintTo(const Composition& composition, std::ostream* out) {
  *out << "store " << static_cast<int>(composition.store) << ", sum "
       << static_cast<int>(composition.sum) << ", adder "
       << static_cast<int>(composition.adder) << ", rows "
       << static_cast<int>(composition.rows) << ", in_step "
       << composition.in_step << ", rows_in_step " << composition.rows_in_step
       << ", why_host \"" << composition.why_host << "\"";
}

namespace {

using ::testing::HasSubstr;

constexpr TrainingProcess kCpu;
constexpr TrainingProcess kCuda = {.updating_devices = 1};
constexpr TrainingProcess kTwoCpus = {.devices = 2};
constexpr TrainingProcess kTwoCuda = {.devices = 2, .updating_devices = 2};
constexpr TrainingProcess kWorker = {.is_in_cluster = true};
constexpr TrainingProcess kCudaWorker = {.is_in_cluster = true,
                                         .updating_devices = 1};

constexpr char kTable[] = "model { sparse_table { name: 't' } }";

job::Job JobOf(const std::string& text) {
  job::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job));
  return job;
}

struct Row {
  std::string job;
  TrainingProcess process;
  Composition want;
};

void Check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.job);
    EXPECT_EQ(Compose(JobOf(row.job), row.process), row.want);
  }
}

TEST(CompositionTest, OneReplicaUpdatesWhereItComputes) {
  Check(
      {{"", kCpu, {}},
       {"strategy { default {} }", kCpu, {}},
       {"strategy { one_device { device: 'cpu' } }", kCpu, {}},
       {"", kCuda, {.store = Store::kDevices}},
       {kTable, kCpu, {}},
       {kTable, kCuda, {.store = Store::kDevices, .rows = TableStore::kDevice}},
       {absl::StrCat("train { batch_size: 8 micro_batch_size: 4 } ", kTable),
        kCuda,
        {.why_host = "train.micro_batch_size is set"}},
       {"strategy { one_device { device: 'cuda' } }",
        kCuda,
        {.store = Store::kDevices}},
       {"train { batch_size: 8 micro_batch_size: 4 }",
        kCuda,
        {.why_host = "train.micro_batch_size is set"}},
       {"train { batch_size: 4 micro_batch_size: 4 }",
        kCuda,
        {.store = Store::kDevices}}});
}

TEST(CompositionTest, WorkersFormGroupsWhereTheyHaveTheVariables) {
  EXPECT_TRUE(HasGroups(StrategyKind::kMultiWorkerMirrored));
  EXPECT_TRUE(HasGroups(StrategyKind::kHybrid));
  EXPECT_FALSE(HasGroups(StrategyKind::kParameterServer));
  EXPECT_FALSE(HasGroups(StrategyKind::kMirrored));
}

TEST(CompositionTest, ReplicasOfOneProcessAddInStep) {
  const Composition host = {.sum = Sum::kReplicas, .in_step = true};
  const Composition devices = {
      .store = Store::kDevices, .sum = Sum::kReplicas, .in_step = true};
  Composition first = devices, nccl = devices, first_on_host = host;
  first.adder = first_on_host.adder = Adder::kFirst;
  nccl.adder = Adder::kNccl;
  Check({{"strategy { mirrored {} }", kTwoCpus, host},
         {"strategy { mirrored {} }", kTwoCuda, devices},
         {"strategy { mirrored { cross_device_ops: REDUCTION_TO_ONE_DEVICE } }",
          kTwoCuda, first},
         {"strategy { mirrored { cross_device_ops: REDUCTION_TO_ONE_DEVICE } }",
          kTwoCpus, first_on_host},
         {"strategy { mirrored { cross_device_ops: NCCL } }", kTwoCuda, nccl},
         {"strategy { central_storage {} }", kTwoCpus, host},
         {"strategy { central_storage {} }", kTwoCuda, host},
         {"strategy { multi_worker_mirrored {} }", kTwoCuda, host}});
}

TEST(CompositionTest, MirroredReplicasSayWhyTheyAreOnTheHost) {
  const auto why = [](const std::string& job, const TrainingProcess& process,
                      const std::string& settings = "") {
    const Composition composition = Compose(
        JobOf(absl::StrCat("strategy { mirrored { ", settings, " } } ", job)),
        process);
    EXPECT_EQ(composition.store == Store::kHost, !composition.why_host.empty());
    EXPECT_EQ(composition.has_parts(), composition.store == Store::kDevices);
    return composition.why_host;
  };
  EXPECT_EQ(why(kTable, kTwoCuda), "the model has sparse tables");
  EXPECT_EQ(why("", {.devices = 2, .updating_devices = 1}),
            "not all replicas are on CUDA devices");
  EXPECT_EQ(why("", {.devices = 16, .updating_devices = 16}), "");
  EXPECT_EQ(why("", {.devices = 17, .updating_devices = 17}),
            "there are more than 16 replicas");
  EXPECT_THAT(why("optimizer { custom {} }", kTwoCuda),
              HasSubstr("a custom optimizer"));
  EXPECT_THAT(why("", kTwoCuda, "custom {}"),
              HasSubstr("an all-reduce of the user's own"));
}

// Returns why the only replica's updates, on a CUDA device, need the host.
std::string WhyHost(const std::string& job) {
  return Compose(JobOf(job), kCuda).why_host;
}

TEST(CompositionTest, ACommonNormKeepsUpdatesOnTheHostWhereItsPartsDiffer) {
  const std::string global = "optimizer { global_clipnorm: 1 } ";
  EXPECT_EQ(WhyHost(global), "");
  EXPECT_EQ(WhyHost(absl::StrCat("optimizer { clipnorm: 1 } ", kTable)), "");
  EXPECT_THAT(WhyHost(global + kTable), HasSubstr("variables and tables"));
  EXPECT_EQ(WhyHost(global + "model { sparse_table { optimizer {} } }"), "");
  EXPECT_THAT(
      WhyHost(global + "model { layer { learning_rate_multiplier: 2 } }"),
      HasSubstr("different rates"));
  const std::string excludes = "lamb { exclude_from_weight_decay: 'bias' } ";
  EXPECT_EQ(WhyHost("optimizer { global_clipnorm: 1 lamb {} }"), "");
  EXPECT_EQ(WhyHost("optimizer { " + excludes + "}"), "");
  EXPECT_THAT(WhyHost("optimizer { global_clipnorm: 1 " + excludes + "}"),
              HasSubstr("different exclusions"));
}

TEST(CompositionTest, ACommonNormOfLayersIsTheirOwn) {
  const std::string own = "optimizer { sgd {} global_clipnorm: 1 } ";
  EXPECT_EQ(WhyHost("model { layer { " + own + "} }"), "");
  EXPECT_THAT(
      WhyHost("model { layer { name: 'wide' learning_rate_multiplier: 2 " +
              own + "} }"),
      HasSubstr("layer wide is that of variables with different rates"));
  EXPECT_THAT(
      WhyHost("model { layer { name: 'wide' optimizer { global_clipnorm: 1 "
              "lamb { exclude_from_weight_decay: 'bias' } } } }"),
      HasSubstr("layer wide is that of variables with different exclusions"));
}

TEST(CompositionTest, AnOptimizerOfTheUsersOwnWorksOnTheHost) {
  const std::string custom = "optimizer { custom { type: 'yogi' } } ";
  EXPECT_THAT(WhyHost("model { layer { " + custom + "} }"),
              HasSubstr("a custom optimizer"));
  EXPECT_THAT(WhyHost(custom + kTable), HasSubstr("a custom optimizer"));
  EXPECT_THAT(WhyHost("model { sparse_table { " + custom + "} }"),
              HasSubstr("a custom optimizer"));
}

TEST(CompositionTest, PsAddWhatTheyHave) {
  const Composition ps = {.store = Store::kPs, .rows = TableStore::kPs};
  Composition in_step = ps;
  in_step.in_step = in_step.rows_in_step = true;
  Check(
      {{"", kWorker, ps},
       {"parameter_server { bounded_staleness {} }", kCudaWorker, ps},
       {"strategy { parameter_server {} } parameter_server { synchronous {} }",
        kWorker, in_step},
       {"parameter_server { synchronous {} }", kCudaWorker, in_step}});
  EXPECT_TRUE(ps.has_ps());
  EXPECT_FALSE(ps.has_group());
}

TEST(CompositionTest, AGroupAddsVariablesAndPsOnlyRows) {
  const std::string step = "parameter_server { synchronous {} } ";
  const std::string alone = step + "strategy { multi_worker_mirrored {} } ";
  const std::string nccl =
      step + "strategy { multi_worker_mirrored { communication: NCCL } } ";
  const Composition host = {.sum = Sum::kGroup, .in_step = true};
  Composition on_device = host, summed = host, beside = host;
  on_device.store = Store::kDevices;
  on_device.adder = summed.adder = Adder::kNccl;
  summed.why_host = "the model has sparse tables";
  beside.rows = TableStore::kPs;
  Composition beside_in_step = beside;
  beside_in_step.rows_in_step = true;
  Check({{alone, kCudaWorker, host},
         {alone + kTable, kWorker, host},
         {nccl, kCudaWorker, on_device},
         {nccl + kTable, kCudaWorker, summed},
         {nccl, {.is_in_cluster = true, .trains_variables = false}, host},
         {step + kTable + "strategy { hybrid {} }", kWorker, beside_in_step},
         {step + kTable + "strategy { hybrid { tables: ASYNCHRONOUS } }",
          kWorker, beside}});
  EXPECT_FALSE(host.has_ps());
  EXPECT_TRUE(beside.has_ps());
  EXPECT_TRUE(beside.has_group());
  EXPECT_TRUE(summed.has_parts());
  EXPECT_FALSE(host.has_parts());
}

TEST(CompositionTest, NcclOfAGroupSaysWhyTheVariablesAreOnTheHost) {
  const auto why = [](const std::string& devices, const std::string& job) {
    return Compose(JobOf(absl::StrCat("strategy { multi_worker_mirrored { ",
                                      "communication: NCCL ", devices, " } } ",
                                      job)),
                   kCudaWorker)
        .why_host;
  };
  EXPECT_EQ(why("device: 'cuda:0'", ""), "");
  EXPECT_EQ(why("device: 'cuda:0' device: 'cuda:1'", ""),
            "there are several devices");
  EXPECT_EQ(why("", "train { batch_size: 8 micro_batch_size: 4 }"),
            "train.micro_batch_size is set");
}

}  // namespace
}  // namespace parasol

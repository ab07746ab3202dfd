// Jobs that are mirrored on several CUDA devices, as a CPU plays them. Only
// with --config=cuda_host.

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/collective/custom/custom_all_reduce.h"
#include "cluster/collective/plan/reduction_plans.h"
#include "cluster/job/defaults.h"
#include "cluster/job/strategy.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/settings.h"
#include "worker/lone_training.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

constexpr char kModel[] = R"(
    seed: 5
    model {
      input { name: "x" dense { column { name: "a" } column { name: "b" } } }
      layer { name: "first" dense { units: 33 kernel_l2: .01 } }
      layer { name: "normal" batch_normalization {} }
      layer { name: "relu" activation: RELU }
      layer { name: "drop" dropout { rate: .25 } }
      layer { name: "frozen" dense { units: 5 } trainable: false }
      layer { name: "y" dense { units: 1 } }
      loss { mean_squared_error {} }
    }
    train {
      csv { file: "data.csv" label { column: "y" } }
      batch_size: 4
    }
    eval { csv { file: "data.csv" label { column: "y" } } batch_size: 8 }
    end { epochs: 3 }
    checkpoint { max_to_keep: 100 }
    )";

// An all-reduce of a user that adds in ascending order of the replicas.
class InOrder : public AllReducePlanner {
 public:
  std::string name() const override { return "in_order"; }
  CollectivePlan AllReduce(const Reduction& reduction,
                           int rank) const override {
    return AllReducePlan(reduction, ReductionAlgorithm::kChain, rank);
  }
};

const CustomAllReduceRegistration kInOrder(
    "in_order",
    [](const job::Custom&)
        -> absl::StatusOr<std::unique_ptr<const AllReducePlanner>> {
      return std::make_unique<InOrder>();
    });

constexpr char kAdam[] = "optimizer { adam { learning_rate: .01 } }";

// All arrays of all variables of a checkpoint, as bits.
using Bits = std::map<std::string, std::vector<uint32_t>>;

class CudaMirroredTest : public testing::Test {
 protected:
  // With 37 examples the replicas' shards differ: at the end of an epoch some
  // have smaller batches, or none.
  CudaMirroredTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream data(root_ + "/data.csv");
    data << "a,b,y\n";
    for (int i = 0; i < 37; ++i) {
      data << i % 7 << "," << i % 5 - 2 << "," << i % 3 << "\n";
    }
  }

  static job::Job JobOf(const std::string& rest) {
    job::Job job;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat(kModel, rest), &job));
    return job;
  }

  static job::Job JobWithTable() {
    job::Job job = JobOf(kAdam);
    job.clear_model();
    job::Job of_table;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "model { "
        "input { name: 'i' ids { column { name: 'a' hash {} } } } "
        "sparse_table { name: 'rows' width: 3 } "
        "layer { embedding_bag { table: 'rows' } input: 'i' } "
        "layer { name: 'y' dense { units: 1 } } "
        "loss { mean_squared_error {} } }",
        &of_table));
    job.MergeFrom(of_table);
    return job;
  }

  static std::string Devices(int count) {
    std::string devices;
    for (int i = 0; i < count; ++i) {
      absl::StrAppend(&devices, " device: 'cuda:", i, "'");
    }
    return devices;
  }

  // Trains under the strategy of the text, to the checkpoints of `run`.
  absl::Status Train(job::Job job, const std::string& strategy,
                     const std::string& run) {
    job::Job with_strategy;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("strategy { ", strategy, " }"), &with_strategy));
    job.MergeFrom(with_strategy);
    job.mutable_checkpoint()->set_directory(DirectoryOf(run));
    FillDefaults(job);
    ASSIGN_OR_RETURN(ProcessReplicas replicas,
                     ResolveProcessReplicas(job, "auto"));
    RETURN_IF_ERROR(SetReplicas(replicas.devices.size(), job));
    MetricsRegistry metrics;
    LoneTraining training({.trainer = {.job = job,
                                       .graph = *ResolveGraph(job.model()),
                                       .replicas = std::move(replicas),
                                       .data_dir = root_}},
                          Clock::Real(), metrics);
    return training.Run();
  }

  std::string DirectoryOf(const std::string& run) const {
    return absl::StrCat(root_, "/", run);
  }

  Bits BitsOf(const std::string& run) const {
    const CheckpointStore store(DirectoryOf(run));
    const auto checkpoint =
        *CheckpointReader::Open(store.PathOf(**store.NewestComplete()));
    Bits bits;
    for (const auto& variable : checkpoint->manifest().variable()) {
      size_t size = 1;
      for (const int64_t side : variable.shape()) size *= side;
      std::vector<float> elements(size);
      for (int array = 0; array <= variable.slot_size(); ++array) {
        EXPECT_OK(checkpoint
                      ->ReadElements(variable.name(), array, 0,
                                     absl::MakeSpan(elements))
                      .status());
        auto& of_array = bits[absl::StrCat(variable.name(), ", ", array)];
        for (const float element : elements) {
          of_array.push_back(std::bit_cast<uint32_t>(element));
        }
      }
    }
    return bits;
  }

  std::string EvaluationsOf(const std::string& run) const {
    std::ifstream file(DirectoryOf(run) + "/evaluations.jsonl");
    std::string line;
    std::getline(file, line);
    return line.substr(line.find("\"loss\""), 30);
  }

  // Trains on the devices, and with gradients and variables in host memory.
  void ExpectSameBits(const job::Job& job, int devices,
                      const std::string& ops = "") {
    SCOPED_TRACE(absl::StrCat(devices, " devices, ", ops));
    fs::remove_all(DirectoryOf("host"));
    fs::remove_all(DirectoryOf("devices"));
    ASSERT_OK(Train(
        job, absl::StrCat("central_storage {", Devices(devices), "}"), "host"));
    ASSERT_OK(Train(job, absl::StrCat("mirrored {", Devices(devices), ops, "}"),
                    "devices"));
    EXPECT_EQ(BitsOf("devices"), BitsOf("host"));
    EXPECT_EQ(EvaluationsOf("devices"), EvaluationsOf("host"));
  }

  const std::string root_;
};

constexpr char kToOne[] = " cross_device_ops: REDUCTION_TO_ONE_DEVICE";
constexpr char kByNccl[] = " cross_device_ops: NCCL";

TEST_F(CudaMirroredTest, EndsWithTheBitsOfSumsInHostMemory) {
  for (const int devices : {1, 2, 3, 4}) {
    for (const char* ops : {"", kToOne}) {
      ExpectSameBits(JobOf(kAdam), devices, ops);
    }
  }
}

TEST_F(CudaMirroredTest, AUsersAllReduceAddsInHostMemory) {
  for (const int devices : {1, 2, 3}) {
    testing::internal::CaptureStderr();
    ExpectSameBits(JobOf(kAdam), devices, " custom { type: 'in_order' }");
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr("the variables are in host memory, and gradients are "
                          "summed there: an all-reduce of the user's own adds "
                          "there"));
  }
}

TEST_F(CudaMirroredTest, TheOrderOfTheSumOfTwoDoesNotMatterToNccl) {
  for (const int devices : {1, 2}) {
    ExpectSameBits(JobOf(kAdam), devices, kByNccl);
  }
}

TEST_F(CudaMirroredTest, NcclHasTheSumsButForTheirOrder) {
  // Adam's steps depend on the sign of sums that are all but 0.
  const job::Job job = JobOf("optimizer { sgd { learning_rate: .01 } }");
  for (const int devices : {3, 4}) {
    SCOPED_TRACE(devices);
    for (const std::string ops : {"", kByNccl}) {
      const std::string run = absl::StrCat(devices, ops.empty() ? "" : "nccl");
      ASSERT_OK(Train(
          job, absl::StrCat("mirrored {", Devices(devices), ops, "}"), run));
    }
    const Bits want = BitsOf(absl::StrCat(devices));
    for (const auto& [name, bits] : BitsOf(absl::StrCat(devices, "nccl"))) {
      for (size_t i = 0; i < bits.size(); ++i) {
        EXPECT_NEAR(std::bit_cast<float>(bits[i]),
                    std::bit_cast<float>(want.at(name)[i]), 1e-5)
            << name;
      }
    }
  }
}

TEST_F(CudaMirroredTest, PassesNeedNotBeRecorded) {
  const job::Job job =
      JobOf(absl::StrCat(kAdam, "worker { cuda_graphs: false }"));
  ExpectSameBits(job, 3);
  ExpectSameBits(job, 2, kToOne);
  ExpectSameBits(job, 2, kByNccl);
}

TEST_F(CudaMirroredTest, AllOptimizersAndAveragesAreTheHosts) {
  for (const char* optimizer :
       {"sgd { momentum: .9 } ema { decay: .75 }",
        "lamb { weight_decay: .1 exclude_from_weight_decay: 'bias' }",
        "adam { amsgrad: true } learning_rate_schedule { cosine_decay { "
        "decay_steps: 9 } }"}) {
    SCOPED_TRACE(optimizer);
    ExpectSameBits(JobOf(absl::StrCat("optimizer { ", optimizer, " }")), 2);
  }
}

TEST_F(CudaMirroredTest, ALoneReplicaMayClip) {
  ExpectSameBits(
      JobOf("optimizer { adam {} clipnorm: .1 global_clipnorm: .15 }"), 1);
}

TEST_F(CudaMirroredTest, AJobGoesOnWhereAnotherEnded) {
  job::Job job = JobOf(kAdam);
  job.clear_end();
  job::Job half = job;
  half.mutable_end()->set_steps(7);
  job.mutable_end()->set_steps(17);
  const std::string devices = absl::StrCat("mirrored {", Devices(2), "}");
  const std::string host = absl::StrCat("central_storage {", Devices(2), "}");
  ASSERT_OK(Train(job, host, "whole"));
  ASSERT_OK(Train(half, devices, "from_devices"));
  ASSERT_OK(Train(job, host, "from_devices"));
  EXPECT_EQ(BitsOf("from_devices"), BitsOf("whole"));
  ASSERT_OK(Train(half, host, "from_host"));
  ASSERT_OK(Train(job, devices, "from_host"));
  EXPECT_EQ(BitsOf("from_host"), BitsOf("whole"));
}

// Evaluations on the way take averages to the devices and back.
TEST_F(CudaMirroredTest, ARateThatIsReducedOnTheWayIsReducedOnAllDevices) {
  job::Job job = JobOf(
      "optimizer { adam { learning_rate: .05 } ema { decay: .5 } "
      "reduce_on_plateau { patience: 1 } } evaluation { every_steps: 3 }");
  ExpectSameBits(job, 2);
}

TEST_F(CudaMirroredTest, HistogramsAreThoseOfTheDevices) {
  job::Job job = JobOf(kAdam);
  job.set_tensorboard_histograms(true);
  ASSERT_OK(Train(job, absl::StrCat("mirrored {", Devices(2), "}"), "run"));
  std::string events;
  for (const auto& file :
       fs::directory_iterator(DirectoryOf("run") + "/tensorboard/eval")) {
    std::ostringstream bytes;
    bytes << std::ifstream(file.path(), std::ios::binary).rdbuf();
    events += bytes.str();
  }
  EXPECT_THAT(events, HasSubstr("first/kernel"));
}

TEST_F(CudaMirroredTest, ALossThatIsNotFiniteEndsTheJobUnlessItSaysOtherwise) {
  std::ofstream(root_ + "/data.csv") << "a,b,y\n1,1,1e30\n1,2,1\n1,1,1e30\n";
  const std::string devices = absl::StrCat("mirrored {", Devices(2), "}");
  job::Job job = JobOf(kAdam);
  EXPECT_THAT(
      Train(job, devices, "stops"),
      StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("the loss is ")));
  job.mutable_worker()->set_non_finite_loss(job::WorkerSettings::CONTINUE);
  EXPECT_OK(Train(job, devices, "goes on"));
}

TEST_F(CudaMirroredTest, WhatNeedsTheHostStaysThereAndALineSaysWhy) {
  job::Job in_micro_batches = JobOf(kAdam);
  in_micro_batches.mutable_train()->set_micro_batch_size(2);
  const struct {
    job::Job job;
    std::string devices;
    std::string why;
  } kCases[] = {{in_micro_batches, Devices(2), "train.micro_batch_size is set"},
                {JobWithTable(), Devices(2), "the model has sparse tables"},
                {JobOf(kAdam), " device: 'cuda:0' device: 'cpu:0'",
                 "not all replicas are on CUDA devices"}};
  for (const auto& test : kCases) {
    fs::remove_all(DirectoryOf("run"));
    testing::internal::CaptureStderr();
    EXPECT_OK(
        Train(test.job, absl::StrCat("mirrored {", test.devices, "}"), "run"));
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, HasSubstr(absl::StrCat("the variables are in host memory, "
                                            "and gradients are summed there: ",
                                            test.why)));
    EXPECT_THAT(log, HasSubstr("; gradients are summed by all replicas"));
  }
}

TEST_F(CudaMirroredTest, ALineSaysWhereVariablesAreAndWhoAdds) {
  const std::map<std::string, std::string> whos = {
      {"", "all devices"}, {kToOne, "cuda:0"}, {kByNccl, "NCCL"}};
  for (const auto& [ops, who] : whos) {
    testing::internal::CaptureStderr();
    EXPECT_OK(Train(JobOf(kAdam),
                    absl::StrCat("mirrored {", Devices(2), ops, "}"), who));
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr(absl::StrCat("each device has the variables, and "
                                       "gradients are summed by ",
                                       who)));
  }
}

TEST_F(CudaMirroredTest, AJobForNcclIsRefusedWhereItIsNot) {
  cuda_on_host::SetFaults("libnccl.so.2=1");
  EXPECT_THAT(
      Train(JobOf(kAdam), absl::StrCat("mirrored {", Devices(2), kByNccl, "}"),
            "run"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("strategy.mirrored.cross_device_ops: NCCL cannot be "
                         "opened: libnccl.so.2: not on this machine; install "
                         "NCCL 2, or choose HIERARCHICAL_COPY")));
  cuda_on_host::SetFaults("");
  EXPECT_FALSE(fs::exists(DirectoryOf("run")));
}

TEST_F(CudaMirroredTest, AFailureOfNcclEndsTheJobAndNamesIt) {
  const std::string strategy =
      absl::StrCat("mirrored {", Devices(2), kByNccl, "}");
  cuda_on_host::SetFaults("ncclCommInitAll=2");
  EXPECT_THAT(Train(JobOf(kAdam), strategy, "start"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("NCCL: ncclCommInitAll for cuda:0, cuda:1")));
  cuda_on_host::SetFaults("ncclAllReduce=1@3");
  EXPECT_THAT(Train(JobOf(kAdam), strategy, "step"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("NCCL: ncclAllReduce on cuda:0 (CUDA on the "
                                 "host): unhandled cuda error")));
  cuda_on_host::SetFaults("");
}

TEST_F(CudaMirroredTest, ALostDeviceEndsTheJob) {
  cuda_on_host::SetFaults("cudaMemcpyPeerAsync=700@9");
  EXPECT_THAT(
      Train(JobOf(kAdam), absl::StrCat("mirrored {", Devices(2), "}"), "run"),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("copy from cuda:")));
  cuda_on_host::SetFaults("");
}

// What a step copies, as the difference of two runs: batches to the devices,
// losses to the host, and between devices each slice there and back.
TEST_F(CudaMirroredTest, AStepCopiesNoGradientsAndValuesThroughTheHost) {
  const auto counts_of = [&](int steps) {
    job::Job job = JobOf(absl::StrCat(kAdam, "worker { cuda_graphs: false }"));
    job.clear_eval();
    job.clear_end();
    job.mutable_end()->set_steps(steps);
    const cuda_on_host::Counts before = cuda_on_host::CountsSoFar();
    EXPECT_OK(Train(job, absl::StrCat("mirrored {", Devices(3), "}"),
                    absl::StrCat(steps)));
    cuda_on_host::Counts counts = cuda_on_host::CountsSoFar();
    counts.copies_in -= before.copies_in;
    counts.copies_out -= before.copies_out;
    counts.bytes_out -= before.bytes_out;
    counts.copies_within -= before.copies_within;
    counts.records -= before.records;
    counts.stream_waits -= before.stream_waits;
    return counts;
  };
  // One epoch has 4 steps.
  const cuda_on_host::Counts few = counts_of(3), more = counts_of(7);
  // Of 4 steps, with 3 replicas; those without examples copy none.
  EXPECT_LE(more.copies_in - few.copies_in, 4 * 3 * 2) << "batch and seed";
  EXPECT_LE(more.copies_out - few.copies_out, 4 * 3) << "losses";
  EXPECT_LE(more.bytes_out - few.bytes_out, 4 * 3 * 20);
  EXPECT_LE(more.copies_within - few.copies_within, 4 * 2 * 3 * 2);
  EXPECT_GE(more.copies_within - few.copies_within, 3 * 2 * 3 * 2);
  // Events of passes, of which there are 10, and of the two orders of all.
  EXPECT_LE(more.records - few.records, 10 * 3 + 4 * 2 * 3);
  EXPECT_LE(more.stream_waits - few.stream_waits, 10 * 2 + 4 * 2 * 3 * 2);
}

}  // namespace
}  // namespace parasol

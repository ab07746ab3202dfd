#include "worker/local/device_variables.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/device/testing/lazy_copy_device.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "ml/model/testing/model_fixture.h"
#include "worker/clipped_model.h"
#include "worker/local/host_variables.h"
#include "worker/local/local_parameters.h"
#include "worker/local/updating_model.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// Moving means are not trained.
constexpr char kDense[] =
    "model { input_shape: 6 layer { dense { units: 40 } } "
    "layer { batch_normalization {} } "
    "layer { dense { units: 3 kernel_l2: .01 } } "
    "loss { sparse_categorical_crossentropy {} } } ";

constexpr char kWithTable[] =
    "model { input { name: 'x' dense { shape: 6 } } "
    "input { name: 'u' ids { column { name: 'u' identity { num_ids: 100 } } } "
    "} "
    "sparse_table { name: 'users' width: 4 %s } "
    "layer { name: 'd' dense { units: 5 } input: 'x' } "
    "layer { name: 'e' embedding { table: 'users' } input: 'u' } "
    "layer { name: 'f' flatten {} } "
    "layer { concatenate {} input: ['d', 'f'] } "
    "layer { dense { units: 3 } } "
    "loss { sparse_categorical_crossentropy {} } } ";

job::Job ParseJob(const std::string& text) {
  job::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job));
  FillDefaults(job);
  return job;
}

job::Job JobWithTable(const std::string& of_table, const std::string& rest) {
  std::string model = kWithTable;
  model.replace(model.find("%s"), 2, of_table);
  return ParseJob(model + rest);
}

// The batch of a step; those of two steps differ, also in size.
Batch BatchOf(int step, const job::Job& job) {
  Batch batch = RandomBatch(8 - step % 2, {6}, 3);
  for (float& value : batch.dense[0].values) value *= .5f + step;
  if (job.model().sparse_table().empty()) return batch;
  batch.ids.emplace_back();
  batch.ids[0].offsets = {0};
  for (int64_t i = 0; i < batch.size; ++i) {
    batch.ids[0].ids.push_back(i * (step + 1) % 5);
    batch.ids[0].offsets.push_back(i + 1);
  }
  return batch;
}

// The parts of a lone worker's step, with the variables in host memory or on
// the device.
class Worker {
 public:
  enum class Variables { kOnHost, kOnDevice };

  // `batches`: number of staged batches, which take turns. With one, each step
  // is staged while the last one's may be read; with two nothing waits for
  // that.
  Worker(const job::Job& job, Device& device, Variables where, int batches = 1)
      : job_(job),
        graph_(*ResolveGraph(job.model())),
        model_(*Model::Create(graph_, device)) {
    if (where == Variables::kOnHost) {
      auto on_host = *HostVariables::Create(graph_.variables, job);
      host_variables_ = on_host.get();
      variables_ = std::move(on_host);
    } else {
      auto on_device = *DeviceVariables::Create(
          graph_.variables, job, *model_->device_training(), device);
      model_ = UpdateOnDevice(std::move(model_), *on_device);
      variables_ = std::move(on_device);
    }
    model_ = ClipGradients(std::move(model_), job);
    while (staged_.size() < static_cast<size_t>(batches)) {
      staged_.push_back(model_->NewStagedBatch());
    }
    parameters_ = *LocalParameters::Create(*variables_, job);
  }

  BatchResult Step(int step) {
    const Batch batch = BatchOf(step, job_);
    StagedBatch& staged = *staged_[step % staged_.size()];
    EXPECT_OK(model_->Stage(batch, staged));
    Pull(staged);
    const auto result = model_->Gradients(
        staged, /*seed=*/step,
        {.variable =
             [this](size_t variable, absl::Span<const float> gradient) {
               host_variables_->Apply(variable, /*first=*/0, gradient);
               host_variables_->CountUpdate(variable);
             },
         .rows =
             [this](size_t table, absl::Span<const uint64_t> ids,
                    absl::Span<const float> gradients) {
               ParameterClient::PushRequest push;
               push.rows.push_back({table, ids, gradients});
               EXPECT_OK(parameters_->Push(std::move(push))->Wait());
             }});
    EXPECT_OK(result);
    return *result;
  }

  // Returns all arrays of all variables, as bits, and rows of the tables.
  std::vector<std::vector<uint32_t>> Everything() {
    std::vector<std::vector<uint32_t>> all;
    for (size_t i = 0; i < variables_->specs().size(); ++i) {
      for (int array = 0; array < variables_->num_arrays(i); ++array) {
        all.push_back(Bits(*variables_->Read(i, array)));
      }
    }
    const std::vector<uint64_t> ids = {0, 1, 2, 3, 4};
    for (int i = 0; i < job_.model().sparse_table_size(); ++i) {
      std::vector<float> rows(ids.size() *
                              job_.model().sparse_table(i).width());
      ParameterClient::PullRequest pull;
      pull.rows.push_back({static_cast<size_t>(i), ids, absl::MakeSpan(rows)});
      EXPECT_OK(parameters_->Pull(std::move(pull))->Wait());
      all.push_back(Bits(rows));
    }
    return all;
  }

  // Takes the variables of `other`, as from a checkpoint.
  void Restore(Worker& other) {
    for (size_t i = 0; i < variables_->specs().size(); ++i) {
      for (int array = 0; array < variables_->num_arrays(i); ++array) {
        ASSERT_OK(
            variables_->Write(i, array, *other.variables_->Read(i, array)));
      }
      variables_->SetUpdates(i, other.variables_->updates()[i]);
    }
  }

  LocalVariables& variables() { return *variables_; }
  Model& model() { return *model_; }

 private:
  static std::vector<uint32_t> Bits(absl::Span<const float> values) {
    std::vector<uint32_t> bits;
    for (const float value : values) {
      bits.push_back(std::bit_cast<uint32_t>(value));
    }
    return bits;
  }

  void Pull(const StagedBatch& staged) {
    ParameterClient::PullRequest pull;
    for (size_t i = 0; i < model_->variables().size(); ++i) {
      pull.targets.push_back({i, model_->HostValue(i)});
    }
    for (const StagedBatch::Rows& rows : staged.rows()) {
      pull.rows.push_back({rows.table, rows.ids, rows.values});
    }
    EXPECT_OK(parameters_->Pull(std::move(pull))->Wait());
    for (size_t i = 0; i < model_->variables().size(); ++i) {
      EXPECT_OK(model_->Upload(i));
    }
  }

  const job::Job job_;
  const Graph graph_;
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<StagedBatch>> staged_;
  std::unique_ptr<LocalVariables> variables_;
  HostVariables* host_variables_ = nullptr;  // null: they are on the device
  std::unique_ptr<LocalParameters> parameters_;
};

class DeviceVariablesTest : public DeviceTest {
 protected:
  static constexpr int kSteps = 6;

  Worker OnHost(const job::Job& job) {
    return Worker(job, device(), Worker::Variables::kOnHost);
  }
  Worker OnDevice(const job::Job& job) {
    return Worker(job, device(), Worker::Variables::kOnDevice);
  }

  // Trains one after the other: waits of the second would be the first's, too.
  void ExpectSameBits(const job::Job& job, int batches = 1) {
    Worker on_device(job, device(), Worker::Variables::kOnDevice, batches);
    Worker host = OnHost(job);
    EXPECT_EQ(on_device.Everything(), host.Everything());
    const std::vector<double> losses = Train(on_device);
    EXPECT_EQ(losses, Train(host));
    EXPECT_EQ(on_device.Everything(), host.Everything());
  }

  static std::vector<double> Train(Worker& worker) {
    std::vector<double> losses;
    for (int step = 0; step < kSteps; ++step) {
      losses.push_back(worker.Step(step).loss_sum);
    }
    return losses;
  }
};

TEST_P(DeviceVariablesTest, UpdatesHaveTheBitsOfTheHosts) {
  for (const std::string optimizer :
       {"sgd { momentum: .9 nesterov: true }",
        "adam { amsgrad: true } clipnorm: .1",
        "nadam { learning_rate: .01 } clipvalue: .01 "
        "learning_rate_schedule { cosine_decay { decay_steps: 9 } }",
        "rmsprop { momentum: .5 centered: true } clipvalue: .01 clipnorm: .1 "
        "global_clipnorm: .15",
        "ftrl {} global_clipnorm: .1"}) {
    SCOPED_TRACE(optimizer);
    ExpectSameBits(
        ParseJob(absl::StrCat(kDense, "optimizer { ", optimizer, " }")));
  }
}

TEST_P(DeviceVariablesTest, TablesStayOnTheHostAndAreClippedThere) {
  for (const std::string optimizer :
       {"adagrad {}", "adagrad {} clipvalue: .01 clipnorm: .02"}) {
    SCOPED_TRACE(optimizer);
    ExpectSameBits(
        JobWithTable("", absl::StrCat("optimizer { ", optimizer, " }")));
  }
  ExpectSameBits(JobWithTable("optimizer { adam {} global_clipnorm: .01 }",
                              "optimizer { adam {} global_clipnorm: .02 }"));
}

// A step's seed is written for the device while it may still read the last
// one's.
TEST_P(DeviceVariablesTest, EachStepDropsItsOwnElements) {
  ExpectSameBits(
      ParseJob("model { input_shape: 6 layer { dense { units: 40 } } "
               "layer { dropout { rate: .5 } } layer { dense { units: 40 } } "
               "layer { dropout { rate: .2 } } layer { dense { units: 3 } } "
               "loss { sparse_categorical_crossentropy {} } } optimizer { adam "
               "{} }"),
      /*batches=*/2);
}

TEST_P(DeviceVariablesTest, WhatWasReadGoesOnWhenItIsWritten) {
  const job::Job job = ParseJob(
      absl::StrCat(kDense, "optimizer { adam { amsgrad: true } clipnorm: 1 }"));
  Worker first = OnDevice(job), on_device = OnDevice(job), host = OnHost(job);
  for (int step = 0; step < 3; ++step) first.Step(step);
  EXPECT_THAT(first.variables().updates(), Each(3));
  on_device.Restore(first);
  host.Restore(first);
  for (int step = 3; step < kSteps; ++step) {
    for (Worker* worker : {&first, &on_device, &host}) worker->Step(step);
  }
  EXPECT_THAT(on_device.variables().updates(), Each(kSteps));
  EXPECT_EQ(on_device.Everything(), first.Everything());
  EXPECT_EQ(host.Everything(), first.Everything());
}

TEST_P(DeviceVariablesTest, InitialValuesCanBeHadAgain) {
  const job::Job job =
      ParseJob(absl::StrCat(kDense, "optimizer { adagrad {} }"));
  Worker worker = OnDevice(job);
  const std::vector<std::vector<uint32_t>> initial = worker.Everything();
  worker.Step(0);
  EXPECT_NE(worker.Everything(), initial);
  ASSERT_OK(worker.variables().Initialize(job.seed()));
  EXPECT_THAT(worker.variables().updates(), Each(0));
  EXPECT_EQ(worker.Everything(), initial);
}

TEST_P(DeviceVariablesTest, ItsCallerSeesTablesOnly) {
  Worker worker = OnDevice(JobWithTable("", "optimizer { sgd {} }"));
  EXPECT_THAT(worker.model().variables(), IsEmpty());
  EXPECT_THAT(worker.model().tables(), Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceVariablesTest,
                         testing::Values(kLazyCopies, "cuda:0", kRecording,
                                         kCudaGraphs),
                         DeviceName);

TEST(CanUpdateOnDeviceTest, UnlessTheCommonNormIncludesTables) {
  const std::string global = "optimizer { sgd {} global_clipnorm: 1 }";
  EXPECT_TRUE(CanUpdateOnDevice(ParseJob(kDense + global)));
  EXPECT_TRUE(
      CanUpdateOnDevice(JobWithTable("", "optimizer { sgd {} clipnorm: 1 }")));
  EXPECT_TRUE(CanUpdateOnDevice(JobWithTable("optimizer { sgd {} }", global)));
  EXPECT_FALSE(CanUpdateOnDevice(JobWithTable("", global)));
}

// Notes how many bytes each copy has.
class CountingDevice : public LazyCopyDevice {
 public:
  std::vector<size_t> TakeCopied() { return std::exchange(copied_, {}); }

 private:
  absl::Status CopyBytes(Stream stream, const void* from, void* to,
                         size_t bytes) override {
    copied_.push_back(bytes);
    return LazyCopyDevice::CopyBytes(stream, from, to, bytes);
  }

  std::vector<size_t> copied_;
};

TEST(UpdatingModelTest, AStepCopiesItsBatchAndItsLossesAndNothingElse) {
  CountingDevice device;
  Worker worker(ParseJob(absl::StrCat(kDense,
                                      "optimizer { adam {} clipnorm: 1 "
                                      "global_clipnorm: 1 }")),
                device, Worker::Variables::kOnDevice);
  worker.Step(0);
  device.TakeCopied();
  worker.Step(2);  // as large
  constexpr size_t kExamples = 8, kFeatures = 6, kL2Terms = 1;
  EXPECT_THAT(device.TakeCopied(),
              UnorderedElementsAre(kExamples * kFeatures * sizeof(float),
                                   kExamples * sizeof(float),  // labels
                                   (kExamples + kL2Terms) * sizeof(float)));
}

}  // namespace
}  // namespace parasol

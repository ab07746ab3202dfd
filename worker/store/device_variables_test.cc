#include "worker/store/device_variables.h"

#include <cstddef>
#include <cstdint>
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
#include "ml/model/model.h"
#include "ml/model/testing/model_fixture.h"
#include "worker/store/testing/lone_worker.h"

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

// The batch of a step; two steps have different ones, also in size.
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

class DeviceVariablesTest : public DeviceTest {
 protected:
  static constexpr int kSteps = 6;

  LoneWorker OnHost(const job::Job& job) {
    return LoneWorker(job, device(), LoneWorker::Place::kHost);
  }
  LoneWorker OnDevice(const job::Job& job) {
    return LoneWorker(job, device(), LoneWorker::Place::kVariablesOnDevice);
  }

  // Trains one after the other: waits of the second would be the first's, too.
  void ExpectSameBits(const job::Job& job, int batches = 1) {
    LoneWorker on_device(job, device(), LoneWorker::Place::kVariablesOnDevice,
                         batches);
    LoneWorker host = OnHost(job);
    EXPECT_EQ(on_device.Variables(), host.Variables());
    const std::vector<double> losses = Train(on_device, job);
    EXPECT_EQ(losses, Train(host, job));
    EXPECT_EQ(on_device.Variables(), host.Variables());
    for (int i = 0; i < job.model().sparse_table_size(); ++i) {
      EXPECT_EQ(on_device.Table(i), host.Table(i));
    }
  }

  static std::vector<double> Train(LoneWorker& worker, const job::Job& job) {
    std::vector<double> losses;
    for (int step = 0; step < kSteps; ++step) {
      losses.push_back(worker.Step(step, BatchOf(step, job)).loss_sum);
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
        "lamb { weight_decay: .1 } global_clipnorm: .1",
        "lamb { weight_decay: .1 exclude_from_weight_decay: 'bias|gamma' "
        "exclude_from_layer_adaptation: 'dense_1' } ema { decay: .75 }",
        "ftrl {} global_clipnorm: .1"}) {
    SCOPED_TRACE(optimizer);
    ExpectSameBits(
        ParseJob(absl::StrCat(kDense, "optimizer { ", optimizer, " }")));
  }
}

TEST_P(DeviceVariablesTest, LayersMayHaveOptimizers) {
  for (const std::string own :
       {"ftrl {}", "sgd { momentum: .5 } clipnorm: .1",
        "adagrad {} global_clipnorm: .1 ema { decay: .75 }"}) {
    for (const std::string of_job :
         {"adam {}", "sgd {} global_clipnorm: .2", "adam {} ema {}"}) {
      SCOPED_TRACE(absl::StrCat(own, " beside ", of_job));
      ExpectSameBits(ParseJob(absl::StrCat(
          "model { input_shape: 6 layer { dense { units: 40 } optimizer { ",
          own,
          " } } layer { batch_normalization {} } layer { activation: RELU } "
          "layer { dense { units: 5 } optimizer { ",
          own,
          " } } layer { dense { units: 3 kernel_l2: .01 } } "
          "loss { sparse_categorical_crossentropy {} } } optimizer { ",
          of_job, " }")));
      if (HasFailure()) return;
    }
  }
}

TEST_P(DeviceVariablesTest, LayersMayBeFrozenAndHaveRatesAndAverages) {
  for (const std::string optimizer :
       {"adam {} clipnorm: .1", "sgd {} ema { decay: .75 }",
        "adam { amsgrad: true } ema { decay: .75 } clipnorm: .1 "
        "learning_rate_schedule { warmup { steps: 3 } }"}) {
    for (const std::string fields :
         {"", "trainable: false", "learning_rate_multiplier: 3"}) {
      SCOPED_TRACE(absl::StrCat(optimizer, fields));
      ExpectSameBits(ParseJob(absl::StrCat(
          "model { input_shape: 6 layer { dense { units: 40 } } "
          "layer { batch_normalization {} ",
          fields, " } layer { activation: RELU } layer { dense { units: 5 } ",
          fields,
          " } layer { dense { units: 3 kernel_l2: .01 } } "
          "loss { sparse_categorical_crossentropy {} } } optimizer { ",
          optimizer, " }")));
      if (HasFailure()) return;
    }
  }
}

TEST_P(DeviceVariablesTest, SwappedAveragesComeBack) {
  const job::Job job = ParseJob(
      absl::StrCat(kDense, "optimizer { adam {} ema { decay: .75 } }"));
  LoneWorker worker = OnDevice(job);
  const auto initial = worker.Variables();
  // Without updates there are no averages.
  ASSERT_OK(worker.variables().SwapAverages());
  EXPECT_EQ(worker.Variables(), initial);
  Train(worker, job);
  const auto trained = worker.Variables();
  ASSERT_OK(worker.variables().SwapAverages());
  const auto swapped = worker.Variables();
  EXPECT_NE(swapped, trained);
  // The first variable: value, m, v, average.
  EXPECT_EQ(swapped[0], trained[3]);
  EXPECT_EQ(swapped[3], trained[0]);
  ASSERT_OK(worker.variables().SwapAverages());
  EXPECT_EQ(worker.Variables(), trained);
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
  LoneWorker first = OnDevice(job), on_device = OnDevice(job),
             host = OnHost(job);
  for (int step = 0; step < 3; ++step) first.Step(step, BatchOf(step, job));
  EXPECT_THAT(first.variables().updates(), Each(3));
  on_device.Restore(first);
  host.Restore(first);
  for (int step = 3; step < kSteps; ++step) {
    for (LoneWorker* worker : {&first, &on_device, &host})
      worker->Step(step, BatchOf(step, job));
  }
  EXPECT_THAT(on_device.variables().updates(), Each(kSteps));
  EXPECT_EQ(on_device.Variables(), first.Variables());
  EXPECT_EQ(host.Variables(), first.Variables());
}

TEST_P(DeviceVariablesTest, InitialValuesCanBeHadAgain) {
  const job::Job job =
      ParseJob(absl::StrCat(kDense, "optimizer { adagrad {} }"));
  LoneWorker worker = OnDevice(job);
  const std::vector<std::vector<uint32_t>> initial = worker.Variables();
  worker.Step(0, BatchOf(0, job));
  EXPECT_NE(worker.Variables(), initial);
  ASSERT_OK(worker.variables().Initialize(job.seed()));
  EXPECT_THAT(worker.variables().updates(), Each(0));
  EXPECT_EQ(worker.Variables(), initial);
}

TEST_P(DeviceVariablesTest, ItsCallerSeesTablesOnly) {
  LoneWorker worker = OnDevice(JobWithTable("", "optimizer { sgd {} }"));
  EXPECT_THAT(worker.model().variables(), IsEmpty());
  EXPECT_THAT(worker.model().tables(), Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceVariablesTest,
                         testing::Values(kLazyCopies, "cuda:0", kRecording,
                                         kCudaGraphs),
                         DeviceName);

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
  const job::Job job = ParseJob(absl::StrCat(
      kDense, "optimizer { adam {} clipnorm: 1 global_clipnorm: 1 }"));
  LoneWorker worker(job, device, LoneWorker::Place::kVariablesOnDevice);
  worker.Step(0, BatchOf(0, job));
  device.TakeCopied();
  worker.Step(2, BatchOf(2, job));  // as large
  // Features and labels are one copy. Each array begins at a multiple of 256.
  constexpr size_t kExamples = 8, kFeatures = 6, kL2Terms = 1;
  static_assert(kExamples * kFeatures * sizeof(float) <= 256);
  EXPECT_THAT(device.TakeCopied(),
              UnorderedElementsAre(256 + kExamples * sizeof(float),
                                   (kExamples + kL2Terms) * sizeof(float)));
}

}  // namespace
}  // namespace parasol

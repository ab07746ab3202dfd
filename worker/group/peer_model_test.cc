// Models whose gradients stay on a device that third_party/cuda_on_host plays.
// Only with --config=cuda_host.

#include "worker/group/peer_model.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/model/device_training.h"
#include "ml/model/graph.h"
#include "ml/model/testing/model_fixture.h"
#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/settings.h"

namespace parasol {
namespace {

using ::cuda_on_host::Late;
using ::testing::Each;

constexpr char kLayers[] = R"(
  input_shape: [8]
  layer { dense { units: 5 activation: TANH } }
  layer { dense { units: 4 activation: TANH } }
  layer { dense { units: 3 } }
)";
// A layer's bias has fewer bytes, and its kernel more: each layer is a pack.
constexpr int64_t kBytesPerPack = 40;

class CudaPeerModelTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    device_ = *Device::Open("cuda:0", {.cuda_graphs = GetParam()});
    model_ = *Model::Create(*ResolveGraph(Classifier(kLayers)), *device_);
    gradients_ = *DeviceGradients::Create(*device_, *model_->device_training(),
                                          model_->variables(),
                                          {.bytes_per_pack = kBytesPerPack});
    model_ = *KeepGradientsOnDevice(std::move(model_), *gradients_);
    staged_ = model_->NewStagedBatch();
  }
  void TearDown() override { cuda_on_host::SetSchedule(schedule_); }

  // Makes a pass of a replica; the device may go on.
  void Pass(int64_t step, int replica, float weight = 1) {
    for (size_t i = 0; i < model_->variables().size(); ++i) {
      std::fill_n(model_->HostValue(i).data(),
                  model_->variables()[i].elements(), .1f * (1 + replica + i));
      ASSERT_OK(model_->Upload(i));
    }
    ASSERT_OK(gradients_->Expect({.step = step, .replica = replica},
                                 {.weight = weight}));
    ASSERT_OK(model_->Stage(batch_, *staged_));
    ASSERT_OK(
        model_->Gradients(*staged_, /*seed=*/1,
                          {.variable = IgnoreVariable, .rows = IgnoreRows}));
  }
  absl::Status AwaitPack(size_t pack, int replica) {
    absl::MutexLock lock(&gradients_->device_mutex());
    const auto part = gradients_->PartOf(pack, {replica});
    return device_->Wait(*part->written.back());
  }
  // Returns the sum of the replicas' gradients.
  std::vector<float> SumOf(const std::vector<int>& replicas) {
    EXPECT_OK(gradients_->AddUp(replicas));
    absl::MutexLock lock(&gradients_->device_mutex());
    const absl::Span<float> sum = gradients_->sum().on_host();
    return {sum.begin(), sum.end()};
  }
  static int64_t Kernels() {
    const std::string work = cuda_on_host::WorkOf(0);
    return std::count(work.begin(), work.end(), 'k');
  }

  const cuda_on_host::Schedule schedule_ = cuda_on_host::TheSchedule();
  const Batch batch_ = RandomBatch(6, {8}, 3);
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceGradients> gradients_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<StagedBatch> staged_;
};

// Kernels are late: what has run when a pack is there is what it waits for.
// Between two packs there is more than the copy of one.
TEST_P(CudaPeerModelTest, PacksAreThereBeforeTheBackwardPassHasEnded) {
  ASSERT_EQ(gradients_->num_packs(), 3);
  cuda_on_host::SetSchedule({.seed = 1, .late = Late::kCompute});
  for (int64_t step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    cuda_on_host::NoteWork();
    Pass(step, /*replica=*/0);
    EXPECT_TRUE(gradients_->IsTaken(step, {0}));
    EXPECT_FALSE(gradients_->Has(step, {0})) << "it was not pushed";
    std::vector<int64_t> kernels = {Kernels()};
    for (size_t pack = 0; pack < gradients_->num_packs(); ++pack) {
      ASSERT_OK(AwaitPack(pack, 0));
      kernels.push_back(Kernels());
    }
    for (size_t i = 1; i < kernels.size(); ++i) {
      EXPECT_LT(kernels[i - 1] + 1, kernels[i]) << "pack " << i - 1;
    }
    ASSERT_OK(device_->Synchronize());
  }
}

// The pass of the other replica writes where the first one's gradients were.
TEST_P(CudaPeerModelTest, ReplicasHaveTheirOwnGradients) {
  for (int64_t step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    Pass(step, 1);
    const std::vector<float> first = SumOf({1});
    Pass(step, 0);
    std::vector<float> want = SumOf({0});
    EXPECT_NE(first, want);
    EXPECT_EQ(SumOf({1}), first);
    for (size_t i = 0; i < want.size(); ++i) want[i] += first[i];
    EXPECT_EQ(SumOf({0, 1}), want);
  }
}

TEST_P(CudaPeerModelTest, WhatWasTakenIsNotTakenAgain) {
  Pass(3, 0);
  const std::vector<float> want = SumOf({0});
  Pass(3, 0, /*weight=*/2);
  EXPECT_EQ(SumOf({0}), want) << "it has the step";
  Pass(2, 1);
  EXPECT_FALSE(gradients_->IsTaken(2, {1})) << "the step is over";
  EXPECT_TRUE(gradients_->IsTaken(3, {0}));
}

TEST_P(CudaPeerModelTest, AReplicaWithoutExamplesHasZeros) {
  Pass(0, 0);
  ASSERT_OK(
      gradients_->Expect({.step = 0, .replica = 1}, {.has_examples = false}));
  ASSERT_OK(gradients_->Push({.step = 0, .replica = 1}));
  EXPECT_TRUE(gradients_->Has(0, {1}));
  EXPECT_FALSE(gradients_->Has(0, {0}));
  EXPECT_THAT(SumOf({1}), Each(0));
  EXPECT_THAT(SumOf({}), Each(0));
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaPeerModelTest, testing::Bool());

}  // namespace
}  // namespace parasol

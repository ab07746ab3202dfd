#include "worker/store/gradient_means.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/lazy_copy_device.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Part = DevicePart;
using Way = GradientMeans::Way;

class GradientMeansTest : public testing::Test {
 protected:
  // Makes means of arrays of `size` elements; element i of replica r is
  // 10 · r + i.
  void Make(int replicas, size_t size, Way way) {
    means_.reset();
    group_.reset();
    gradients_.clear();
    devices_.clear();
    std::vector<Device*> devices;
    std::vector<absl::Span<float>> arrays;
    for (int replica = 0; replica < replicas; ++replica) {
      devices_.push_back(std::make_unique<LazyCopyDevice>());
      devices.push_back(devices_.back().get());
      gradients_.push_back(*devices.back()->NewArray<float>(size));
      const absl::Span<float> array = gradients_.back().span();
      for (size_t i = 0; i < size; ++i) array[i] = 10.f * replica + i;
      arrays.push_back(array);
    }
    group_ = *DeviceGroup::Create(devices);
    means_ = *GradientMeans::Create(*group_, arrays, way);
  }

  std::vector<std::unique_ptr<LazyCopyDevice>> devices_;
  std::vector<Array<float>> gradients_;
  std::unique_ptr<DeviceGroup> group_;
  std::unique_ptr<GradientMeans> means_;
};

// Sizes below, at and above the steps in which slices grow.
TEST_F(GradientMeansTest, EachReplicaHasTheMean) {
  for (const Way way : {Way::kAllDevices, Way::kFirstDevice}) {
    for (const int replicas : {1, 2, 3}) {
      for (const size_t size : {0, 1, 64, 65, 128, 200}) {
        Make(replicas, size, way);
        ASSERT_OK(means_->Enqueue(std::vector<Part>(replicas)));
        std::vector<float> want;
        for (size_t i = 0; i < size; ++i)
          want.push_back(5 * (replicas - 1) + i);
        for (const Array<float>& array : gradients_) {
          EXPECT_EQ(array.span(), absl::MakeConstSpan(want))
              << replicas << " replicas, " << size << " elements";
        }
      }
    }
  }
}

TEST_F(GradientMeansTest, ReplicasHaveWeightsOrNoExamples) {
  Make(3, 2, Way::kAllDevices);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::fill_n(gradients_[1].data(), 2, nan);
  ASSERT_OK(means_->Enqueue({{.weight = 2}, {.has_examples = false}, {}}));
  for (const Array<float>& array : gradients_) {
    EXPECT_THAT(array.span(), ElementsAre(20 / 3.f, (2 + 21) / 3.f));
  }
}

TEST_F(GradientMeansTest, ALoneReplicaMayHaveNoExamples) {
  Make(1, 3, Way::kAllDevices);
  ASSERT_OK(means_->Enqueue({{.has_examples = false}}));
  EXPECT_THAT(gradients_[0].span(), Each(0));
}

// The order shows: 1e8 + 1 - 1e8 is 0 in float32.
TEST_F(GradientMeansTest, AddsInTheOrderOfTheReplicas) {
  Make(3, 300, Way::kAllDevices);
  const float values[] = {1e8f, 1, -1e8f};
  for (int i = 0; i < 3; ++i) std::fill_n(gradients_[i].data(), 300, values[i]);
  ASSERT_OK(means_->Enqueue(std::vector<Part>(3)));
  EXPECT_THAT(gradients_[1].span(), Each(0));
}

TEST_F(GradientMeansTest, NcclNeedsCudaDevices) {
  LazyCopyDevice device;
  EXPECT_THAT(DeviceGroup::Create({&device}, {.nccl = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       testing::HasSubstr("CUDA")));
}

}  // namespace
}  // namespace parasol

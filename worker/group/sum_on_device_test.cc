#include "worker/group/sum_on_device.h"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SumOnDeviceTest : public DeviceTest {};

INSTANTIATE_TEST_SUITE_P(Devices, SumOnDeviceTest, DevicesUnderTest(),
                         DeviceName);

// More than one call adds, with a weight for each.
TEST_P(SumOnDeviceTest, AllTermsAreAddedInTheirOrder) {
  ASSERT_OK_AND_ASSIGN(auto sum, SumOnDevice::Create(device(), 2, true));
  constexpr int kTerms = 2 * kMaxReplicasOfAMean;
  std::vector<ReplicaGradients> terms;
  std::vector<float> want(2, 0);
  for (int i = 0; i < kTerms; ++i) {
    const std::vector<float> term = {.1f * i, 1e7f / (1 + i)};
    terms.push_back({.data = Put(term), .weight = 1});
    for (int j = 0; j < 2; ++j) want[j] += term[j];
  }
  ASSERT_OK(sum->AddUp(terms));
  ASSERT_OK(device().Synchronize());
  EXPECT_EQ(Get(sum->values().data(), 2), want);
  EXPECT_THAT(sum->on_host(), ElementsAre(want[0], want[1]));
}

TEST_P(SumOnDeviceTest, TheSumOfNothingIsZeros) {
  ASSERT_OK_AND_ASSIGN(auto sum, SumOnDevice::Create(device(), 3, true));
  ASSERT_OK(sum->AddUp({{.data = Put<float>({1, 2, 3})}}));
  ASSERT_OK(sum->AddUp({}));
  ASSERT_OK(device().Synchronize());
  EXPECT_THAT(sum->on_host(), Each(0));
}

TEST_P(SumOnDeviceTest, ASumComesToTheHostWhenItIsFetched) {
  ASSERT_OK_AND_ASSIGN(auto sum, SumOnDevice::Create(device(), 2, false));
  ASSERT_OK(sum->AddUp({{.data = Put<float>({1, 2})}}));
  EXPECT_THAT(sum->on_host(), IsEmpty());
  ASSERT_OK(sum->Fetch());
  EXPECT_THAT(sum->on_host(), ElementsAre(1, 2));
}

TEST_P(SumOnDeviceTest, EachSumIsSearchedForWhatIsNotFinite) {
  ASSERT_OK_AND_ASSIGN(auto sum, SumOnDevice::Create(device(), 2, false));
  for (const float element : {1.f, std::numeric_limits<float>::quiet_NaN(), 2.f,
                              -std::numeric_limits<float>::infinity(), 3.f}) {
    SCOPED_TRACE(element);
    ASSERT_OK(sum->AddUp({{.data = Put<float>({0, element})}}));
    EXPECT_THAT(sum->HasNonFinite(), IsOkAndHolds(!std::isfinite(element)));
  }
}

TEST_P(SumOnDeviceTest, TheMeanLeavesTheSumAsItIs) {
  ASSERT_OK_AND_ASSIGN(auto sum, SumOnDevice::Create(device(), 2, false));
  float* const mean = Put<float>({0, 0});
  ASSERT_OK(sum->AddUp({{.data = Put<float>({3, 8})}}));
  ASSERT_OK(sum->WriteMean(/*replicas=*/4, mean));
  ASSERT_OK(device().Wait(sum->read()));
  EXPECT_THAT(Get(mean, 2), ElementsAre(.75f, 2));
  EXPECT_THAT(Get(sum->values().data(), 2), ElementsAre(3, 8));
}

}  // namespace
}  // namespace parasol

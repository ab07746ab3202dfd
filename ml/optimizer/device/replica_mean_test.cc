#include "ml/optimizer/device/replica_mean.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"

namespace parasol {
namespace {

class ReplicaMeanTest : public DeviceTest {
 protected:
  static std::vector<float> Draw(int64_t size, uint32_t seed) {
    const reference::Matrix m = RandomMatrix(1, size, seed);
    std::vector<float> values;
    for (const double value : m.values) {
      // Products and sums of these round.
      values.push_back(static_cast<float>(std::tan(value * 1.5)));
    }
    return values;
  }

  static std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
    std::vector<uint32_t> bits;
    for (const float value : values) {
      bits.push_back(std::bit_cast<uint32_t>(value));
    }
    return bits;
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, ReplicaMeanTest, DevicesUnderTest(),
                         DeviceName);

TEST_P(ReplicaMeanTest, AddsInTheOrderOfTheReplicasAndRoundsEachOperation) {
  const std::vector<float> weights = {1, .7f, 1.3f};
  for (const int64_t size : {1, 100, 70'001}) {
    std::vector<std::vector<float>> values;
    std::vector<ReplicaGradients> replicas;
    for (size_t i = 0; i < weights.size(); ++i) {
      values.push_back(Draw(size, i + 1));
      replicas.push_back({.data = Put(values[i]), .weight = weights[i]});
    }
    std::vector<float> want = values[0];
    for (int64_t i = 0; i < size; ++i) {
      for (size_t j = 1; j < weights.size(); ++j) {
        volatile float term = values[j][i];
        term = term * weights[j];
        want[i] += term;
      }
      want[i] /= 3;
    }
    float* const mean = Put(std::vector<float>(size));
    ASSERT_OK(ReplicaMean(device(), replicas, 3, size, mean));
    EXPECT_EQ(BitsOf(Get(mean, size)), BitsOf(want)) << size;
  }
}

TEST_P(ReplicaMeanTest, MayTakeThePlaceOfOneReplica) {
  const std::vector<float> first = {1, 2, 3}, second = {5, 6, -7};
  float* const mean = Put(second);
  ASSERT_OK(ReplicaMean(device(), {{{.data = Put(first)}, {.data = mean}}}, 2,
                        3, mean));
  EXPECT_THAT(Get(mean, 3), testing::ElementsAre(3, 4, -2));
}

// Zeros are added, not left out: -0 + 0 is 0.
TEST_P(ReplicaMeanTest, AReplicaWithoutAnArrayHasZeros) {
  const std::vector<float> values = {-0.f, 4, NAN};
  float* const mean = Put(values);
  ASSERT_OK(ReplicaMean(device(),
                        {{{.data = mean}, {.data = nullptr, .weight = 3}}}, 2,
                        3, mean));
  const std::vector<float> got = Get(mean, 3);
  EXPECT_EQ(BitsOf({got[0], got[1]}), BitsOf({0.f, 2.f}));
  EXPECT_TRUE(std::isnan(got[2])) << "what is not finite stays so";
}

}  // namespace
}  // namespace parasol

#include "ps/dense/step_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "cluster/rows/row_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/dense/array_pool.h"
#include "ps/dense/received_gradient.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

constexpr size_t kSize = 100;

std::string BytesOf(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

// Numbers of very different sizes, whose sum depends on the order.
std::vector<std::string> SomeGradients(int replicas) {
  std::mt19937 random(replicas);
  std::uniform_real_distribution<float> fraction(-1, 1);
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::vector<std::string> gradients;
  for (int replica = 0; replica < replicas; ++replica) {
    std::vector<float> gradient(kSize);
    for (float& element : gradient) {
      element = std::ldexp(fraction(random), exponent(random));
    }
    gradients.push_back(BytesOf(gradient));
  }
  return gradients;
}

class StepSumTest : public testing::Test {
 protected:
  void Add(int replica, const std::string& bytes) {
    const PayloadView payload = ViewOf(bytes, 33);
    const auto gradient =
        ReceivedGradient::Create(payload, bytes.size() / sizeof(float), {});
    GradientReader reader(*gradient);
    sum_.Add(replica, gradient->elements(), reader, *pool_, memory_);
  }

  std::vector<float> Mean() {
    const ArrayRef mean = sum_.TakeMean();
    return {mean.data(), mean.data() + mean.size()};
  }

  const std::shared_ptr<ArrayPool> pool_ = ArrayPool::Create(kSize, 8);
  const std::shared_ptr<RowMemory> memory_ = std::make_shared<RowMemory>(20);
  StepSum sum_;
};

TEST_F(StepSumTest, IsTheMeanOfItsGradients) {
  Add(1, BytesOf({1, 10}));
  Add(0, BytesOf({2, 20}));
  Add(2, BytesOf({6, 0}));
  EXPECT_THAT(Mean(), ElementsAre(3, 10));
}

TEST_F(StepSumTest, BackupReplicasMayMakeTheStep) {
  Add(3, BytesOf({1}));
  Add(1, BytesOf({4}));
  EXPECT_THAT(Mean(), ElementsAre(2.5));
  Add(2, BytesOf({8}));
  EXPECT_THAT(Mean(), ElementsAre(8));
}

TEST_F(StepSumTest, WhatWasClearedIsNotInTheNextMean) {
  Add(0, BytesOf({1}));
  Add(2, BytesOf({1}));
  sum_.Clear();
  Add(2, BytesOf({7}));
  EXPECT_THAT(Mean(), ElementsAre(7));
}

TEST_F(StepSumTest, WhatIsHeldIsCountedAndTheNextInOrderAlwaysHasRoom) {
  Add(2, BytesOf({1, 2}));
  EXPECT_EQ(memory_->taken_bytes(), 8u);
  EXPECT_TRUE(sum_.HasRoom(3, 3, memory_.get()));
  EXPECT_FALSE(sum_.HasRoom(3, 4, memory_.get()));
  EXPECT_TRUE(sum_.HasRoom(0, 1000, memory_.get()));
  Add(0, BytesOf({1, 2}));
  EXPECT_EQ(memory_->taken_bytes(), 8u);
  Add(1, BytesOf({1, 2}));
  EXPECT_EQ(memory_->taken_bytes(), 0u);
  Add(5, BytesOf({1, 2}));
  EXPECT_EQ(memory_->taken_bytes(), 8u);
  Mean();
  EXPECT_EQ(memory_->taken_bytes(), 0u);
}

TEST_F(StepSumTest, HasTheSameBitsInEveryOrderOfArrival) {
  constexpr int kReplicas = 5;
  const std::vector<std::string> gradients = SomeGradients(kReplicas);
  std::vector<int> order(kReplicas);
  std::iota(order.begin(), order.end(), 0);
  std::vector<float> first;
  do {
    for (const int replica : order) Add(replica, gradients[replica]);
    const std::vector<float> mean = Mean();
    if (first.empty()) first = mean;
    ASSERT_EQ(std::memcmp(mean.data(), first.data(), kSize * sizeof(float)), 0)
        << testing::PrintToString(order);
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace parasol

#include "ml/kernel/l2.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/pass_argument.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

class L2Test : public DeviceTest {};

TEST_P(L2Test, TheLossIsTheSumOfSquaresAndTheGradientItsDerivative) {
  for (const int64_t size : {0, 1, 15, 4096, 70001}) {
    SCOPED_TRACE(absl::StrCat(size, " elements"));
    const std::vector<double> w = RandomMatrix(1, size, 3).values;
    const std::vector<double> before = RandomMatrix(1, size, 4).values;
    constexpr double kL2 = .25;
    double want = 0;
    std::vector<float> want_gradient;
    for (int64_t i = 0; i < size; ++i) {
      want += kL2 * w[i] * w[i];
      want_gradient.push_back(before[i] + 2 * kL2 * w[i]);
    }
    const float* on_device = Put(std::vector<float>(w.begin(), w.end()));
    float* loss = Put(std::vector<float>{7});
    float* gradient = Put(std::vector<float>(before.begin(), before.end()));
    const L2Term term = {
        .w = on_device, .size = size, .l2 = kL2, .gradient = gradient};
    ASSERT_OK(L2Losses(device(), {term}, loss));
    ASSERT_OK(AddL2Gradients(device(), {term}));
    EXPECT_NEAR(Get(loss, 1)[0], want, 1e-6 * want);
    EXPECT_THAT(Get(gradient, size), Pointwise(FloatNear(1e-6), want_gradient));
  }
}

// More terms than one launch of a CUDA kernel takes, each of another size.
TEST_P(L2Test, ManyTermsAreThoseTakenOneByOne) {
  constexpr int64_t kTerms = 300;
  std::vector<L2Term> terms;
  std::vector<float> want_losses;
  for (int64_t i = 0; i < kTerms; ++i) {
    terms.push_back({.w = Put(std::vector<float>(i, 1.f)),
                     .size = i,
                     .l2 = .5f * (i % 4),
                     .gradient = Put(std::vector<float>(i, 3.f))});
    want_losses.push_back(.5f * (i % 4) * i);
  }
  float* losses = Put(std::vector<float>(kTerms, 7));
  ASSERT_OK(L2Losses(device(), terms, losses));
  ASSERT_OK(AddL2Gradients(device(), terms));
  EXPECT_EQ(Get(losses, kTerms), want_losses);
  for (int64_t i = 0; i < kTerms; ++i) {
    EXPECT_THAT(Get(terms[i].gradient, i), Each(3.f + i % 4)) << "term " << i;
  }
}

// The kernels learn of the rows when they run, and the caller only how many
// elements there are at most.
TEST_P(L2Test, ATermOfRowsIsThatOfTheRowsThatAreThere) {
  constexpr int64_t kCapacity = 70001;
  for (const int64_t elements : {int64_t{0}, int64_t{5}, kCapacity}) {
    SCOPED_TRACE(absl::StrCat(elements, " elements"));
    float* const gradient = Put(std::vector<float>(kCapacity, 3));
    TableRows rows = {};
    rows.values = Put(std::vector<float>(kCapacity, 2));
    rows.gradients = gradient;
    rows.elements = elements;
    const L2Term term = {
        .size = kCapacity, .l2 = .5, .rows = Put(std::vector<TableRows>{rows})};
    float* const losses = Put(std::vector<float>{7, 7});
    const L2Term other = {.w = Put(std::vector<float>{3}),
                          .size = 1,
                          .l2 = 1,
                          .gradient = losses};
    ASSERT_OK(AddL2Gradients(device(), {term, other}));
    EXPECT_EQ(Get(losses, 1)[0], 7 + 2 * 3);
    ASSERT_OK(L2Losses(device(), {term, other}, losses));
    EXPECT_THAT(Get(losses, 2), ElementsAre(.5f * 4 * elements, 9));
    const std::vector<float> gradients = Get(gradient, kCapacity);
    EXPECT_THAT(absl::MakeConstSpan(gradients).first(elements), Each(3.f + 2));
    EXPECT_THAT(absl::MakeConstSpan(gradients).subspan(elements), Each(3.f));
  }
}

// Behind the values of a row lie its slots, which are no part of the sum.
TEST_P(L2Test, ATermOfRowsInBlocksIsThatOfTheirValues) {
  float* const gradient = Put(std::vector<float>(6, 3));
  // Rows 0 and 1, 2 and 3.
  float* const first = Put(std::vector<float>{1, 2, 90, 90, 3, 4, 90, 90});
  float* const second = Put(std::vector<float>{5, 6, 90, 90, 7, 8, 90, 90});
  TableRows rows = {};
  rows.gradients = gradient;
  rows.elements = 4;
  rows.width = 2;
  rows.numbers = Put(std::vector<int32_t>{3, 0});
  rows.blocks = {.blocks = Put(std::vector<float*>{first, second}),
                 .shift = 1,
                 .floats = 4};
  const L2Term term = {
      .size = 6, .l2 = .5, .rows = Put(std::vector<TableRows>{rows})};
  float* const loss = Put(std::vector<float>{7});
  ASSERT_OK(L2Losses(device(), {term}, loss));
  EXPECT_EQ(Get(loss, 1)[0], .5f * (49 + 64 + 1 + 4));
  ASSERT_OK(AddL2Gradients(device(), {term}));
  EXPECT_THAT(Get(gradient, 6), ElementsAre(3 + 7, 3 + 8, 3 + 1, 3 + 2, 3, 3));
}

// A sum in single precision would stop growing at 2^24.
TEST_P(L2Test, ManySmallSquaresAreNotLost) {
  constexpr int64_t kSize = 40'000'000;
  const float* w = Put(std::vector<float>(kSize, 1.f));
  float* loss = Put(std::vector<float>{0});
  ASSERT_OK(L2Losses(device(), {{.w = w, .size = kSize, .l2 = 1}}, loss));
  EXPECT_EQ(Get(loss, 1)[0], kSize);
}

INSTANTIATE_TEST_SUITE_P(Devices, L2Test, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol

// Kernels that go over arrays of bfloat16 compute in float32 and round what
// they write: they give what arrays of float32 would, rounded.

#include "ml/device/testing/bfloat16.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/add.h"
#include "ml/kernel/relu.h"

namespace parasol {
namespace {

// Whole packs, a part of one, and more than a grid's threads.
constexpr int64_t kSizes[] = {1, 3, 4, 7, 64, 1003};

// Kernels of CUDA devices; the CPU's know no bfloat16.
class Bfloat16KernelTest : public DeviceTest {
 protected:
  Bfloat16* PutRounded(const std::vector<float>& values) {
    return Put(ToBfloat16(values));
  }
};

TEST_P(Bfloat16KernelTest, ASumIsThatOfFloatsRounded) {
  for (const int64_t size : kSizes) {
    for (const AddEpilogue epilogue :
         {AddEpilogue::kNone, AddEpilogue::kRelu}) {
      SCOPED_TRACE(size);
      const std::vector<float> a = RandomBfloat16s(size, 1);
      const std::vector<float> b = RandomBfloat16s(size, 2);
      float* const want = Put(a);
      EXPECT_OK(Add(device(), Put(a), Put(b), size, epilogue, want));
      Bfloat16* const y = PutRounded(a);  // in place
      EXPECT_OK(Add(device(), y, PutRounded(b), size, epilogue, y));
      EXPECT_EQ(ToFloats(Get(y, size)), Rounded(Get(want, size)));
    }
  }
}

TEST_P(Bfloat16KernelTest, ReluAndItsGradientAreExact) {
  for (const int64_t size : kSizes) {
    for (const int64_t offset : {0, 1}) {
      SCOPED_TRACE(testing::Message() << size << " at " << offset);
      const std::vector<float> x = RandomBfloat16s(size + offset, 1);
      const std::vector<float> dy = RandomBfloat16s(size + offset, 2);
      Bfloat16* const y = PutRounded(x) + offset;
      Bfloat16* const dx = PutRounded(dy) + offset;  // in place
      EXPECT_OK(Relu(device(), y, size, y));
      EXPECT_OK(ReluGradient(device(), y, dx, size, dx));
      std::vector<float> want_y, want_dx;
      for (int64_t i = offset; i < size + offset; ++i) {
        want_y.push_back(std::max(x[i], 0.0f));
        want_dx.push_back(x[i] > 0 ? dy[i] : 0);
      }
      EXPECT_EQ(ToFloats(Get(y, size)), want_y);
      EXPECT_EQ(ToFloats(Get(dx, size)), want_dx);
    }
  }
}

TEST_P(Bfloat16KernelTest, ReluKeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Bfloat16* const y = PutRounded(std::vector<float>(5, nan));
  EXPECT_OK(Relu(device(), y, 5, y));
  EXPECT_THAT(ToFloats(Get(y, 5)), testing::Each(testing::IsNan()));
}

INSTANTIATE_TEST_SUITE_P(Devices, Bfloat16KernelTest,
                         ::testing::Values("cuda:0"), DeviceName);

}  // namespace
}  // namespace parasol

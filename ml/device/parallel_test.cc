#include "ml/device/parallel.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"

namespace parasol {
namespace {

using ::testing::Each;

TEST(ParallelTest, EachElementIsInOnePart) {
  for (const int threads : {1, 2, 5}) {
    auto device = *Device::Open("cpu", {.threads = threads});
    for (const int64_t size : {0, 1, 7, 1000}) {
      SCOPED_TRACE(absl::StrCat(size, " elements, ", threads, " threads"));
      std::vector<int> seen(size);
      ParallelFor(*device, size, /*grain=*/3,
                  [&](int64_t part, int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) ++seen[i];
                  });
      EXPECT_THAT(seen, Each(1));
    }
  }
}

TEST(ParallelTest, PartsAreNeitherSmallerThanTheGrainNorMoreThanThreads) {
  auto device = *Device::Open("cpu", {.threads = 4});
  EXPECT_EQ(PartsOf(*device, 0, 10), 1);
  EXPECT_EQ(PartsOf(*device, 19, 10), 1);
  EXPECT_EQ(PartsOf(*device, 20, 10), 2);
  EXPECT_EQ(PartsOf(*device, 1000, 10), 4);
}

}  // namespace
}  // namespace parasol

#include "ml/initializer/fans.h"

#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(FansTest, FollowKerasForEachRank) {
  struct Case {
    std::vector<int64_t> shape;
    double in;
    double out;
  };
  const Case cases[] = {{{}, 1, 1},
                        {{7}, 7, 7},
                        {{784, 128}, 784, 128},
                        {{5, 2, 3}, 10, 15},
                        {{3, 3, 16, 32}, 144, 288}};
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.shape));
    EXPECT_EQ(FansOf(c.shape).in, c.in);
    EXPECT_EQ(FansOf(c.shape).out, c.out);
  }
}

}  // namespace
}  // namespace parasol

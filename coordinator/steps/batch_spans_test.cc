#include "coordinator/steps/batch_spans.h"

#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(BatchSpans, NeighboursAreOneSpan) {
  BatchSpans spans;
  spans.Add(5, 2);
  spans.Add(9);
  EXPECT_THAT(spans.ends(), ElementsAre(Pair(5, 7), Pair(9, 10)));
  spans.Add(7, 2);
  EXPECT_THAT(spans.ends(), ElementsAre(Pair(5, 10)));
  EXPECT_EQ(spans.size(), 5);
}

TEST(BatchSpans, ABatchIsRemovedOnce) {
  BatchSpans spans;
  spans.Add(5, 3);
  EXPECT_TRUE(spans.Remove(6));
  EXPECT_FALSE(spans.Remove(6));
  EXPECT_THAT(spans.ends(), ElementsAre(Pair(5, 6), Pair(7, 8)));
}

TEST(BatchSpans, ATailEndsAtItsFirstGapAndAtItsBegin) {
  BatchSpans spans;
  spans.Add(0, 4);
  spans.Add(5, 5);
  EXPECT_EQ(spans.RemoveTail(7, 10), 3);
  EXPECT_EQ(spans.RemoveTail(0, 7), 2) << "5 and 6; 4 is not there";
  EXPECT_EQ(spans.RemoveTail(0, 7), 0);
  EXPECT_THAT(spans.ends(), ElementsAre(Pair(0, 4)));
}

TEST(BatchSpans, AreTheSetOfTheirBatches) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    BatchSpans spans;
    std::set<int64_t> want;
    for (int turn = 0; turn < 100; ++turn) {
      const int64_t first = random() % 40;
      const int64_t count = random() % 5;
      switch (random() % 4) {
        case 0:
          spans.Add(first, count);
          for (int64_t i = 0; i < count; ++i) want.insert(first + i);
          break;
        case 1:
          EXPECT_EQ(spans.Remove(first), want.erase(first) > 0);
          break;
        case 2: {
          int64_t there = 0;
          for (int64_t batch = first; batch < first + 3 * count; ++batch) {
            there += static_cast<int64_t>(want.erase(batch));
          }
          EXPECT_EQ(spans.RemoveAll(first, first + 3 * count), there);
          break;
        }
        default:
          EXPECT_EQ(spans.RemoveSmallest(count),
                    std::min<int64_t>(count, want.size()));
          for (int64_t i = 0; i < count && !want.empty(); ++i) {
            want.erase(want.begin());
          }
      }
      std::set<int64_t> have;
      for (const auto& [begin, end] : spans.ends()) {
        for (int64_t batch = begin; batch < end; ++batch) have.insert(batch);
      }
      ASSERT_EQ(have, want);
      ASSERT_EQ(spans.size(), static_cast<int64_t>(want.size()));
    }
  }
}

}  // namespace
}  // namespace parasol

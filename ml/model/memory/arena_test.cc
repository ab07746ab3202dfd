#include "ml/model/memory/arena.h"

#include <cstdint>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

TEST(ArenaTest, WhatIsNotInUseTogetherSharesItsPlace) {
  const ArenaLayout layout = LayOut({{8, 0, 1}, {8, 1, 2}, {8, 2, 3}});
  EXPECT_THAT(layout.offsets, ElementsAre(0, 8, 0));
  EXPECT_EQ(layout.size, 16);
}

TEST(ArenaTest, AGapIsFilled) {
  const ArenaLayout layout =
      LayOut({{16, 0, 9}, {8, 0, 3}, {4, 4, 9}, {2, 4, 9}});
  EXPECT_THAT(layout.offsets, ElementsAre(0, 16, 16, 20));
  EXPECT_EQ(layout.size, 24);
}

TEST(ArenaTest, NothingNeedsNothing) { EXPECT_EQ(LayOut({}).size, 0); }

TEST(ArenaTest, NoTwoBlocksThatMeetInTimeMeetInSpace) {
  std::mt19937 random(1);
  std::vector<ArenaBlock> blocks(300);
  for (ArenaBlock& block : blocks) {
    block.size = random() % 100 + 1;
    block.first = random() % 300;
    block.last = block.first + random() % 20;
  }
  const ArenaLayout layout = LayOut(blocks);
  int64_t all = 0;
  for (size_t a = 0; a < blocks.size(); ++a) {
    all += blocks[a].size;
    EXPECT_LE(layout.offsets[a] + blocks[a].size, layout.size);
    for (size_t b = 0; b < a; ++b) {
      if (blocks[a].first > blocks[b].last || blocks[b].first > blocks[a].last)
        continue;
      EXPECT_TRUE(layout.offsets[a] + blocks[a].size <= layout.offsets[b] ||
                  layout.offsets[b] + blocks[b].size <= layout.offsets[a])
          << a << " and " << b;
    }
  }
  EXPECT_LT(layout.size, all / 5);
}

}  // namespace
}  // namespace parasol

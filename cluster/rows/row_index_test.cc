#include "cluster/rows/row_index.h"

#include <cstdint>

#include "base/row_hash.h"
#include "cluster/rows/row_arena.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(RowIndexTest, FindsWhatWasInserted) {
  RowArena arena;
  RowIndex index(arena, .75);
  constexpr uint32_t kRows = 100000;
  for (uint32_t row = 0; row < kRows; ++row) {
    ASSERT_EQ(index.Find(RowHash(row)), RowIndex::kNone) << row;
    index.Insert(RowHash(row), row);
    ASSERT_EQ(index.Find(RowHash(row)), row);
  }
  EXPECT_EQ(index.size(), kRows);
  for (uint32_t row = 0; row < kRows; ++row) {
    ASSERT_EQ(index.Find(RowHash(row)), row);
  }
  EXPECT_EQ(index.Find(RowHash(kRows)), RowIndex::kNone);
}

TEST(RowIndexTest, AnyHashIsAKey) {
  RowArena arena;
  RowIndex index(arena, .5);
  EXPECT_EQ(index.Find(0), RowIndex::kNone);
  index.Insert(0, 7);
  index.Insert(UINT64_MAX, 8);
  EXPECT_EQ(index.Find(0), 7u);
  EXPECT_EQ(index.Find(UINT64_MAX), 8u);
}

TEST(RowIndexTest, HashesOfOneBucketGoToTheNextOnes) {
  RowArena arena;
  RowIndex index(arena, .75);
  // Equal low bits: one bucket, however often the index grows.
  for (uint64_t i = 0; i < 1000; ++i) index.Insert(i << 40, i);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(index.Find(i << 40), i);
  EXPECT_EQ(index.Find(uint64_t{1000} << 40), RowIndex::kNone);
}

TEST(RowIndexTest, OldMemoryGoesBackToTheArena) {
  RowArena arena;
  {
    RowIndex index(arena, .75);
    for (uint64_t i = 0; i < 1000000; ++i) index.Insert(RowHash(i), i);
  }
  const size_t allocated = arena.allocated_bytes();
  RowIndex again(arena, .75);
  for (uint64_t i = 0; i < 10000; ++i) again.Insert(RowHash(i), i);
  EXPECT_EQ(arena.allocated_bytes(), allocated);
}

}  // namespace
}  // namespace parasol

#include "cluster/rows/row_block.h"

#include <cstdint>

#include "cluster/rows/row_arena.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(RowLayoutTest, ARowTouchesFewCacheLinesAndWastesLittle) {
  struct Case {
    size_t floats;
    size_t row_bytes;
    size_t rows_per_block;
  };
  const Case cases[] = {{1, 4, 4096},
                        {2, 8, 2048},
                        {8, 32, 512},
                        {15, 64, 256},  // not across two lines
                        {16, 64, 256},
                        {29, 128, 128},
                        {32, 128, 128},
                        {192, 768, 16},
                        {131072, 524288, 1},
                        // One slot of a row.
                        {3, 12, 1024},
                        {9, 36, 256},
                        {17, 68, 128},
                        {33, 132, 64},
                        {65, 260, 32},
                        {129, 576, 16},
                        {65537, 262208, 1}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.floats);
    const RowLayout layout(1, c.floats);
    EXPECT_EQ(layout.row_bytes, c.row_bytes);
    EXPECT_EQ(layout.rows_per_block(), c.rows_per_block);
    EXPECT_EQ(layout.floats, c.floats);
  }
}

// Ids and times lie behind the rows.
TEST(RowLayoutTest, WhatLiesBehindRowsOfAnySizeIsAligned) {
  RowArena arena;
  for (size_t floats = 1; floats < 5000; ++floats) {
    const RowLayout layout(1, floats, /*timed=*/true);
    const RowBlock block = RowBlock::Allocate(arena, layout);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block.ids(layout)) % 8, 0u) << floats;
    ASSERT_LE(layout.row_bytes - floats * sizeof(float),
              floats * sizeof(float) / 8)
        << floats;
  }
}

TEST(RowBlockTest, RowsAndIdsDontOverlap) {
  RowArena arena;
  const RowLayout layout(16, 32);
  const RowBlock block = RowBlock::Allocate(arena, layout);
  for (size_t i = 0; i < layout.rows_per_block(); ++i) {
    block.row(i, layout)[0] = i;
    block.row(i, layout)[31] = i;
    block.ids(layout)[i] = i;
  }
  for (size_t i = 0; i < layout.rows_per_block(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.row(i, layout)) % 64, 0u);
    EXPECT_EQ(block.row(i, layout)[0], i);
    EXPECT_EQ(block.row(i, layout)[31], i);
    EXPECT_EQ(block.ids(layout)[i], i);
  }
}

TEST(RowBlockTest, ACopyIsItsOwn) {
  RowArena arena;
  const RowLayout layout(16, 16);
  const RowBlock block = RowBlock::Allocate(arena, layout);
  block.row(255, layout)[15] = 3;
  block.ids(layout)[255] = 4;
  const RowBlock shared = block;
  EXPECT_FALSE(block.IsUnique());

  const RowBlock copy = block.Copy(layout);
  EXPECT_TRUE(copy.IsUnique());
  block.row(255, layout)[15] = 5;
  EXPECT_EQ(copy.row(255, layout)[15], 3);
  EXPECT_EQ(copy.ids(layout)[255], 4u);
  EXPECT_EQ(shared.row(255, layout)[15], 5);
}

TEST(RowBlockTest, TheLastReferenceFreesIt) {
  RowArena arena;
  const RowLayout layout(16, 16);
  RowBlock block = RowBlock::Allocate(arena, layout);
  float* const row = block.row(0, layout);
  RowBlock other = block;
  block = RowBlock();
  EXPECT_TRUE(other.IsUnique());
  other = RowBlock();
  EXPECT_EQ(RowBlock::Allocate(arena, layout).row(0, layout), row);
}

}  // namespace
}  // namespace parasol

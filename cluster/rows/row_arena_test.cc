#include "cluster/rows/row_arena.h"

#include <cstdint>
#include <cstring>
#include <set>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(RowArenaTest, PiecesAreAlignedAndApart) {
  RowArena arena;
  std::byte* last = nullptr;
  for (const size_t bytes : {1, 64, 100, 18496, 1 << 20}) {
    auto* const piece = static_cast<std::byte*>(arena.Allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % 64, 0u);
    EXPECT_GE(piece, last);
    std::memset(piece, 1, bytes);
    last = piece + bytes;
  }
}

TEST(RowArenaTest, AFreedPieceIsUsedAgainForItsSize) {
  RowArena arena;
  void* const piece = arena.Allocate(1000);
  arena.Free(piece, 1000);
  EXPECT_NE(arena.Allocate(900), piece);
  EXPECT_EQ(arena.Allocate(1000), piece);
}

TEST(RowArenaTest, ALargeFreedPieceIsCutUp) {
  RowArena arena;
  constexpr size_t kPiece = 1 << 20;
  void* const freed = arena.Allocate(kPiece);
  arena.Free(freed, kPiece);
  // Uses up what is left of the region.
  const size_t rest = RowArena::kRegionBytes - kPiece;
  for (size_t i = 0; i < rest / 1024; ++i) arena.Allocate(1024);
  const size_t allocated = arena.allocated_bytes();
  std::set<void*> pieces;
  for (size_t i = 0; i < kPiece / 1024; ++i) {
    void* const piece = arena.Allocate(1024);
    EXPECT_GE(piece, freed);
    EXPECT_LT(piece, static_cast<std::byte*>(freed) + kPiece);
    EXPECT_TRUE(pieces.insert(piece).second);
  }
  EXPECT_EQ(arena.allocated_bytes(), allocated);
}

TEST(RowArenaTest, GrowsByRegions) {
  RowArena arena;
  constexpr size_t kPiece = 1 << 20;
  std::set<void*> pieces;
  for (size_t i = 0; i < 3 * RowArena::kRegionBytes / kPiece; ++i) {
    EXPECT_TRUE(pieces.insert(arena.Allocate(kPiece)).second);
  }
  EXPECT_EQ(arena.allocated_bytes(), 3 * RowArena::kRegionBytes);
}

TEST(RowArenaTest, ALargePieceGoesBackToTheSystem) {
  RowArena arena;
  void* const piece = arena.Allocate(RowArena::kRegionBytes + 1);
  EXPECT_GT(arena.allocated_bytes(), RowArena::kRegionBytes);
  arena.Free(piece, RowArena::kRegionBytes + 1);
  EXPECT_EQ(arena.allocated_bytes(), 0u);
}

}  // namespace
}  // namespace parasol

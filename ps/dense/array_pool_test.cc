#include "ps/dense/array_pool.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(ArrayPoolTest, ArraysAreAlignedForTheWidestVectors) {
  const auto pool = ArrayPool::Create(/*pooled_size=*/16, /*max_idle=*/1);
  for (const size_t size : {1, 3, 16, 1000}) {
    const ArrayRef array = pool->Allocate(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % 64, 0u) << size;
    EXPECT_EQ(array.size(), size);
  }
}

TEST(ArrayPoolTest, GivesTheSameMemoryAgain) {
  const auto pool = ArrayPool::Create(16, 1);
  const float* memory = pool->Allocate(16).data();
  EXPECT_EQ(pool->Allocate(16).data(), memory);
}

TEST(ArrayPoolTest, KeepsNoMoreThanItsLimitAndNoOtherSize) {
  const auto pool = ArrayPool::Create(16, 1);
  {
    const ArrayRef a = pool->Allocate(16), b = pool->Allocate(16),
                   c = pool->Allocate(8);
  }
  EXPECT_EQ(pool->idle(), 1u);
}

TEST(ArrayPoolTest, AnArrayOutlivesThePoolsOwner) {
  auto pool = ArrayPool::Create(16, 1);
  const ArrayRef array = pool->Allocate(16);
  pool.reset();
  array.data()[15] = 1;
}

TEST(ArrayRefTest, IsUniqueUntilCopiedAndAfterTheCopyIsGone) {
  const auto pool = ArrayPool::Create(16, 1);
  const ArrayRef array = pool->Allocate(16);
  EXPECT_TRUE(array.IsUnique());
  {
    const ArrayRef copy = array;
    EXPECT_FALSE(array.IsUnique());
  }
  EXPECT_TRUE(array.IsUnique());
}

TEST(ArrayPoolTest, SaysWhenThereIsNoMemory) {
  const auto pool = ArrayPool::Create(16, 1);
  EXPECT_FALSE(pool->TryAllocate(SIZE_MAX));
  EXPECT_FALSE(pool->TryAllocate(SIZE_MAX / sizeof(float) - 100));
}

}  // namespace
}  // namespace parasol

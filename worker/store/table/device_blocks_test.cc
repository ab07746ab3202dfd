#include "worker/store/table/device_blocks.h"

#include <cstddef>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/rows/row_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "worker/store/testing/full_device.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Blocks of 4 rows.
constexpr DeviceBlocks::Options kSmall = {.floats = 2,
                                          .block_bytes = 8 * sizeof(float)};
constexpr size_t kBlock = 8 * sizeof(float);

class DeviceBlocksTest : public DeviceTest {};

INSTANTIATE_TEST_SUITE_P(Devices, DeviceBlocksTest,
                         testing::Values(kLazyCopies, "cuda:0"), DeviceName);

TEST_P(DeviceBlocksTest, RowsLieSideBySideInTheirBlock) {
  RowMemory memory;
  DeviceBlocks blocks(kSmall, memory, device());
  ASSERT_OK(blocks.Reserve(5));
  EXPECT_EQ(blocks.rows_per_block(), 4);
  EXPECT_EQ(blocks.capacity(), 8);
  EXPECT_EQ(memory.taken_bytes(), 2 * kBlock);
  EXPECT_EQ(blocks.row(3), blocks.row(0) + 6);
  ASSERT_OK(device().Synchronize());
  const RowBlocks on_device = blocks.blocks();
  EXPECT_THAT(Get(on_device.blocks, 2),
              ElementsAre(blocks.row(0), blocks.row(4)));
}

TEST_P(DeviceBlocksTest, SomeRowsAreFetchedBlockByBlock) {
  RowMemory memory;
  DeviceBlocks blocks(kSmall, memory, device());
  ASSERT_OK(blocks.Reserve(12));
  Array<float> all = *device().NewHostArray<float>(8);
  for (size_t block = 0; block < 3; ++block) {
    std::iota(all.data(), all.data() + 8, 8.f * block);
    ASSERT_OK(device().Copy(Device::Stream::kCompute,
                            absl::Span<const float>(all.span()),
                            blocks.row(4 * block)));
    ASSERT_OK(device().Synchronize());
  }
  std::vector<size_t> firsts;
  std::vector<float> fetched;
  ASSERT_OK(
      blocks.Fetch(4, 10, [&](size_t first, absl::Span<const float> rows) {
        firsts.push_back(first);
        fetched.insert(fetched.end(), rows.begin(), rows.end());
        return absl::OkStatus();
      }));
  EXPECT_THAT(firsts, ElementsAre(4, 8));
  std::vector<float> want(12);
  std::iota(want.begin(), want.end(), 8.f);
  EXPECT_EQ(fetched, want);
}

TEST_P(DeviceBlocksTest, TablesShareALimit) {
  RowMemory memory(/*limit_bytes=*/3 * kBlock + 1);
  DeviceBlocks first(kSmall, memory, device());
  {
    DeviceBlocks second(kSmall, memory, device());
    ASSERT_OK(first.Reserve(4));
    EXPECT_THAT(second.Reserve(12),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("max_device_table_bytes is 97")));
    EXPECT_EQ(second.capacity(), 8) << "what is left is used";
  }
  EXPECT_OK(first.Reserve(12)) << "a table that is gone takes none";
}

TEST_P(DeviceBlocksTest, MemoryIsGivenBackAsItWasAllocated) {
  RowMemory memory;
  DeviceBlocks blocks(kSmall, memory, device());
  // One block, one more, two more.
  for (const size_t rows : {4, 8, 12}) ASSERT_OK(blocks.Reserve(rows));
  ASSERT_EQ(blocks.capacity(), 16);
  EXPECT_EQ(blocks.CapacityWithout(0), 16);
  EXPECT_EQ(blocks.CapacityWithout(1), 8);
  EXPECT_EQ(blocks.CapacityWithout(3 * kBlock), 4);
  EXPECT_EQ(blocks.CapacityWithout(SIZE_MAX), 0);
  const float* const row = blocks.row(7);
  blocks.Truncate(8);
  EXPECT_EQ(blocks.capacity(), 8);
  EXPECT_EQ(memory.taken_bytes(), 2 * kBlock);
  EXPECT_EQ(blocks.row(7), row);
  ASSERT_OK(blocks.Reserve(9));
  ASSERT_OK(device().Synchronize());
  EXPECT_THAT(Get(blocks.blocks().blocks + 2, 1), ElementsAre(blocks.row(8)));
}

TEST(DeviceBlocksOnAFullDeviceTest, NoMoreAreAllocatedThanAreNeeded) {
  FullDevice device;
  RowMemory memory;
  DeviceBlocks blocks(kSmall, memory, device);
  ASSERT_OK(blocks.Reserve(16));
  device.LeaveFree(2 * kBlock);
  EXPECT_OK(blocks.Reserve(20)) << "one block, for four are not there";
  EXPECT_EQ(blocks.capacity(), 20);
  EXPECT_THAT(blocks.Reserve(28),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace parasol

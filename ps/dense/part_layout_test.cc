#include "ps/dense/part_layout.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "cluster/rpc/protocol_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kChunk = kChunkElements;

absl::StatusOr<PartLayout> Layout(std::vector<wire::PartSpec> parts) {
  return PartLayout::Create({parts.begin(), parts.end()}, UINT64_MAX);
}

absl::Status Resolve(const PartLayout& layout,
                     std::vector<wire::TensorRange> ranges) {
  return layout.Resolve({ranges.begin(), ranges.end()}).status();
}

TEST(PartLayoutTest, CutsPartsIntoChunksFromTheirOwnStart) {
  ASSERT_OK_AND_ASSIGN(
      const PartLayout layout,
      Layout({MakePart(0, "a", 10 * kChunk, 100, 2 * kChunk + 1),
              MakePart(1, "b", 5, 0, 5)}));
  ASSERT_EQ(layout.chunks().size(), 4u);
  EXPECT_EQ(layout.chunks()[2].first_element, 100 + 2 * kChunk);
  EXPECT_EQ(layout.chunks()[2].elements, 1u);
  EXPECT_EQ(layout.chunks()[3].part, 1u);
  EXPECT_EQ(layout.elements(), 2u * kChunk + 6);
}

TEST(PartLayoutTest, CheckpointOrderIsByVariableThenElement) {
  ASSERT_OK_AND_ASSIGN(const PartLayout layout,
                       Layout({MakePart(0, "b", 10, 0, 10),
                               MakePart(1, "a", 9 * kChunk, 4 * kChunk, 10),
                               MakePart(2, "a", 9 * kChunk, 0, kChunk + 1)}));
  EXPECT_THAT(layout.ChunksInCheckpointOrder(), ElementsAre(2, 3, 1, 0));
}

TEST(PartLayoutTest, RefusesPartsThatCannotBe) {
  wire::PartSpec overflowing = MakePart(0, "a", INT64_MAX, 0, 1);
  overflowing.add_variable_shape(2);
  wire::PartSpec negative_shape = MakePart(0, "a", -5, 0, 5);
  const std::vector<std::vector<wire::PartSpec>> cases = {
      {MakePart(1, "a", 10, 0, 10)},
      {MakePart(0, "a", 10, 0, 5), MakePart(0, "a", 10, 5, 5)},
      {MakePart(0, "", 10, 0, 10)},
      {MakePart(0, "a", 10, 0, 0)},
      {MakePart(0, "a", 10, 0, -1)},
      {MakePart(0, "a", 10, -1, 5)},
      {MakePart(0, "a", 10, 6, 5)},
      {MakePart(0, "a", 10, INT64_MAX, INT64_MAX)},
      {MakePart(0, "a", 10, 0, 6), MakePart(1, "a", 10, 5, 5)},
      {overflowing},
      {negative_shape},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_THAT(Layout(cases[i]), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(PartLayoutTest, RefusesMoreElementsThanItsLimit) {
  const std::vector<wire::PartSpec> parts = {MakePart(0, "a", 5, 0, 5),
                                             MakePart(1, "b", 5, 0, 5)};
  EXPECT_OK(PartLayout::Create({parts.begin(), parts.end()}, 10));
  EXPECT_THAT(PartLayout::Create({parts.begin(), parts.end()}, 9),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(PartLayoutTest, ResolvesRangesOfWholeChunks) {
  ASSERT_OK_AND_ASSIGN(
      const PartLayout layout,
      Layout({MakePart(0, "a", 5, 0, 5),
              MakePart(1, "b", 3 * kChunk, 0, 2 * kChunk + 9)}));
  const std::vector<wire::TensorRange> ranges = {
      MakeRange(1, kChunk, kChunk + 9), MakeRange(0, 0, 5),
      MakeRange(1, 0, kChunk)};
  ASSERT_OK_AND_ASSIGN(const auto chunks,
                       layout.Resolve({ranges.begin(), ranges.end()}));
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[0].first, 2u);
  EXPECT_EQ(chunks[0].last, 4u);
  EXPECT_EQ(chunks[0].elements, kChunkElements + 9);
  EXPECT_EQ(chunks[1].first, 0u);
  EXPECT_EQ(chunks[2].first, 1u);
}

TEST(PartLayoutTest, RefusesRangesThatAreNotItsChunks) {
  ASSERT_OK_AND_ASSIGN(const PartLayout layout,
                       Layout({MakePart(0, "a", 3 * kChunk, 0, 3 * kChunk)}));
  const uint64_t chunk = kChunk;
  struct Case {
    std::string what;
    std::vector<wire::TensorRange> ranges;
  };
  const Case cases[] = {
      {"0 ranges", {}},
      {"ranges, not", std::vector<wire::TensorRange>(kMaxRangesPerMessage + 1,
                                                     MakeRange(0, 0, chunk))},
      {"not on this shard", {MakeRange(1, 0, chunk)}},
      {"not on this shard", {MakeRange(UINT32_MAX, 0, chunk)}},
      {"goes beyond the part", {MakeRange(0, 0, 0)}},
      {"goes beyond the part", {MakeRange(0, 3 * chunk, chunk)}},
      {"goes beyond the part", {MakeRange(0, 2 * chunk, 2 * chunk)}},
      {"goes beyond the part", {MakeRange(0, chunk, UINT64_MAX - chunk + 1)}},
      {"begin and end with a chunk", {MakeRange(0, 1, chunk)}},
      {"begin and end with a chunk", {MakeRange(0, 0, chunk - 1)}},
      {"overlaps", {MakeRange(0, 0, chunk), MakeRange(0, 0, chunk)}},
      {"overlaps", {MakeRange(0, chunk, chunk), MakeRange(0, 0, 3 * chunk)}},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(
        Resolve(layout, c.ranges),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.what)));
  }
}

}  // namespace
}  // namespace parasol

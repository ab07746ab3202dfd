#include "ml/model/places_by_row.h"

#include <cstdint>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/model/distinct_ids.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(PlacesByRowTest, ARowHasItsPlacesInTheirOrder) {
  PlacesByRow by_row;
  by_row.Assign({0, 3, 3, 6}, {4, 1, 4, 4, 0, 1}, /*num_rows=*/6);
  EXPECT_THAT(by_row.counted_rows(), ElementsAre(3, 4, 1, 0));
  EXPECT_THAT(by_row.starts(), ElementsAre(0, 3, 5, 6));
  EXPECT_THAT(by_row.places(), ElementsAre(0, 2, 3, 1, 5, 4));
  EXPECT_THAT(by_row.examples(), ElementsAre(0, 0, 2, 0, 2, 2));
}

TEST(PlacesByRowTest, ABatchLeavesNothingToTheNext) {
  PlacesByRow by_row;
  by_row.Assign({0, 1, 2}, {0, 2}, /*num_rows=*/3);
  by_row.Assign({0, 0}, {}, /*num_rows=*/0);
  EXPECT_THAT(by_row.counted_rows(), ElementsAre(0));
  EXPECT_THAT(by_row.starts(), ElementsAre(0));
  EXPECT_THAT(by_row.places(), IsEmpty());
  by_row.Assign({0, 1, 2, 3}, {2, 9, 2}, /*num_rows=*/10);
  EXPECT_THAT(by_row.counted_rows(), ElementsAre(2, 2, 9));
  EXPECT_THAT(by_row.starts(), ElementsAre(0, 2, 3));
  EXPECT_THAT(by_row.places(), ElementsAre(0, 2, 1));
}

// Rows ascend there.
TEST(PlacesByRowTest, GroupsHaveThePlacesOfAll) {
  std::mt19937_64 random(1);
  DistinctIds distinct;
  PlacesByRow by_group, at_once;
  for (const int32_t examples : {2000, 3, 1000, 3000}) {
    std::vector<int32_t> offsets = {0};
    std::vector<uint64_t> ids;
    for (int32_t i = 0; i < examples; ++i) {
      offsets.push_back(offsets.back() + random() % 5);
    }
    for (int32_t i = 0; i < offsets.back(); ++i) ids.push_back(random() % 500);
    const absl::Span<const uint64_t> input = ids;
    distinct.Begin(absl::MakeConstSpan(&input, 1));
    distinct.Divide();
    by_group.Begin(offsets);
    for (size_t group = 0; group < distinct.num_groups(); ++group) {
      const DistinctIds::Range range = distinct.Number(group);
      by_group.AssignGroup(range, distinct.PlacesOf(group, range));
    }
    by_group.End(distinct.size());
    at_once.Assign(offsets, distinct.positions(0), distinct.size());
    ASSERT_THAT(by_group.counted_rows(), SizeIs(distinct.size() + 1));
    ASSERT_EQ(by_group.counted_rows()[0], at_once.counted_rows()[0]);
    const auto slice = [](absl::Span<const int32_t> of,
                          absl::Span<const int32_t> starts, int32_t row) {
      return std::vector<int32_t>(of.begin() + starts[row],
                                  of.begin() + starts[row + 1]);
    };
    for (int32_t i = 0; i < at_once.counted_rows()[0]; ++i) {
      const int32_t row = at_once.counted_rows()[1 + i];
      ASSERT_EQ(by_group.counted_rows()[1 + row], row);
      EXPECT_EQ(slice(by_group.places(), by_group.starts(), row),
                slice(at_once.places(), at_once.starts(), i));
      EXPECT_EQ(slice(by_group.examples(), by_group.starts(), row),
                slice(at_once.examples(), at_once.starts(), i));
    }
  }
}

TEST(PlacesByRowTest, GroupsFollowRowsThatWereAssignedAtOnce) {
  PlacesByRow by_row;
  by_row.Assign({0, 1, 2, 3}, {2, 9, 2}, /*num_rows=*/10);
  const std::vector<uint64_t> ids = {5, 5, 5};
  const absl::Span<const uint64_t> input = ids;
  DistinctIds distinct;
  distinct.Assign(absl::MakeConstSpan(&input, 1));
  by_row.Begin({0, 3});
  by_row.AssignGroup({.first = 0, .size = 1},
                     distinct.PlacesOf(0, {.first = 0, .size = 1}));
  by_row.End(1);
  EXPECT_THAT(by_row.counted_rows(), ElementsAre(1, 0));
  EXPECT_THAT(by_row.starts(), ElementsAre(0, 3));
  EXPECT_THAT(by_row.places(), ElementsAre(0, 1, 2));
  EXPECT_THAT(by_row.examples(), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace parasol

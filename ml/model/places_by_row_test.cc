#include "ml/model/places_by_row.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace parasol

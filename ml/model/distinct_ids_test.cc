#include "ml/model/distinct_ids.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "base/row_hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

TEST(DistinctIdsTest, IdsAreNumberedAsTheyAreFirstSeen) {
  DistinctIds distinct;
  std::vector<int32_t> positions(5);
  distinct.Add({7, uint64_t{1} << 63, 7, 0, 7}, positions.data());
  EXPECT_THAT(positions, ElementsAre(0, 1, 0, 2, 0));
  EXPECT_THAT(distinct.ids(), ElementsAre(7, uint64_t{1} << 63, 0));
  distinct.Add({0, 5}, positions.data());
  EXPECT_THAT(absl::MakeSpan(positions).first(2), ElementsAre(2, 3));
}

TEST(DistinctIdsTest, AnotherBatchBeginsWithNone) {
  DistinctIds distinct;
  std::vector<int32_t> positions(2);
  distinct.Add({7, 8}, positions.data());
  distinct.Clear();
  EXPECT_THAT(distinct.ids(), IsEmpty());
  distinct.Add({8, 7}, positions.data());
  EXPECT_THAT(positions, ElementsAre(0, 1));
}

TEST(DistinctIdsTest, ManyIdsAgreeWithAMap) {
  std::mt19937_64 random(1);
  DistinctIds distinct;
  std::map<uint64_t, int32_t> want;
  for (const size_t count : {1, 100, 5000, 20000}) {
    std::vector<uint64_t> ids(count);
    for (uint64_t& id : ids) id = (random() % 4000) << 44;
    std::vector<int32_t> positions(count);
    distinct.Add(ids, positions.data());
    for (size_t i = 0; i < count; ++i) {
      const auto number = static_cast<int32_t>(want.size());
      EXPECT_EQ(positions[i], want.emplace(ids[i], number).first->second);
    }
  }
  EXPECT_EQ(distinct.ids().size(), want.size());
}

TEST(DistinctIdsTest, SortedByStripeEachPositionHasItsId) {
  std::mt19937_64 random(1);
  DistinctIds distinct;
  for (const size_t count : {1, 0, 5000, 100}) {
    distinct.Clear();
    std::vector<std::vector<uint64_t>> ids(2, std::vector<uint64_t>(count));
    std::vector<std::vector<int32_t>> positions(2, std::vector<int32_t>(count));
    for (size_t i = 0; i < ids.size(); ++i) {
      for (uint64_t& id : ids[i]) id = random() % 4000;
      distinct.Add(ids[i], positions[i].data());
    }
    const std::vector<uint64_t> as_seen(distinct.ids().begin(),
                                        distinct.ids().end());
    distinct.SortByStripe(absl::MakeSpan(positions));
    EXPECT_THAT(distinct.ids(), UnorderedElementsAreArray(as_seen));
    for (size_t i = 0; i < ids.size(); ++i) {
      for (size_t j = 0; j < count; ++j) {
        EXPECT_EQ(distinct.ids()[positions[i][j]], ids[i][j]);
      }
    }
    EXPECT_TRUE(std::is_sorted(distinct.ids().begin(), distinct.ids().end(),
                               [](uint64_t a, uint64_t b) {
                                 return StripeOf(RowHash(a)) <
                                        StripeOf(RowHash(b));
                               }));
  }
}

}  // namespace
}  // namespace parasol

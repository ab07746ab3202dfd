#include "ml/model/distinct_ids.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "base/row_hash.h"
#include "base/work_helpers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Ids = std::vector<uint64_t>;

// What DistinctIds says of itself, by sorting and a map.
struct Expected {
  explicit Expected(const std::vector<Ids>& inputs) {
    for (const Ids& input : inputs) {
      for (const uint64_t id : input) {
        if (std::count(ids.begin(), ids.end(), id) == 0) ids.push_back(id);
      }
    }
    std::stable_sort(ids.begin(), ids.end(), [](uint64_t a, uint64_t b) {
      return StripeOf(RowHash(a)) < StripeOf(RowHash(b));
    });
    std::map<uint64_t, int32_t> numbers;
    for (const uint64_t id : ids) {
      numbers.emplace(id, static_cast<int32_t>(numbers.size()));
    }
    for (const Ids& input : inputs) {
      std::vector<int32_t>& of_input = positions.emplace_back();
      for (const uint64_t id : input) of_input.push_back(numbers[id]);
    }
  }

  Ids ids;
  std::vector<std::vector<int32_t>> positions;
};

std::vector<absl::Span<const uint64_t>> Spans(const std::vector<Ids>& inputs) {
  return {inputs.begin(), inputs.end()};
}

void ExpectNumbered(DistinctIds& distinct, const std::vector<Ids>& inputs) {
  const Expected want(inputs);
  EXPECT_THAT(distinct.ids(), ElementsAreArray(want.ids));
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_THAT(distinct.positions(i), ElementsAreArray(want.positions[i]));
  }
  EXPECT_THAT(distinct.hashes(), SizeIs(want.ids.size()));
  for (size_t i = 0; i < want.ids.size(); ++i) {
    EXPECT_EQ(distinct.hashes()[i], RowHash(want.ids[i]));
  }
}

Ids RandomIds(std::mt19937_64& random, size_t count, uint64_t different) {
  Ids ids(count);
  for (uint64_t& id : ids) id = (random() % different) << 44;
  return ids;
}

TEST(DistinctIdsTest, IdsAreNumberedByStripeAndThenAsTheyAreFirstSeen) {
  const std::vector<Ids> inputs = {{7, uint64_t{1} << 63, 7, 0, 7}, {}, {0, 5}};
  DistinctIds distinct;
  distinct.Assign(Spans(inputs));
  ExpectNumbered(distinct, inputs);
}

TEST(DistinctIdsTest, ABatchLeavesNothingToTheNext) {
  std::mt19937_64 random(1);
  DistinctIds distinct;
  for (const size_t count : {1, 5000, 0, 100, 9000, 7}) {
    const std::vector<Ids> inputs = {RandomIds(random, count, 900),
                                     RandomIds(random, count, 900)};
    distinct.Assign(Spans(inputs));
    ExpectNumbered(distinct, inputs);
  }
  distinct.Assign({});
  EXPECT_THAT(distinct.ids(), IsEmpty());
}

// All ids are in one stripe, and want the same slots.
TEST(DistinctIdsTest, IdsWithLikeHashesAreToldApart) {
  Ids ids;
  for (uint64_t i = 0; i < 300; ++i) ids.push_back(RowIdOf(i << 40));
  for (int i = 0; i < 300; i += 2) ids.push_back(ids[i]);
  DistinctIds distinct;
  distinct.Assign(Spans({ids}));
  ExpectNumbered(distinct, {ids});
}

TEST(DistinctIdsTest, AnIdHasTheHashThatItIsFoundBy) {
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, UINT64_MAX, uint64_t{77},
                            uint64_t{1} << 63}) {
    EXPECT_EQ(RowIdOf(RowHash(id)), id);
  }
}

TEST(DistinctIdsTest, ThreadsNumberAsOneDoes) {
  std::mt19937_64 random(1);
  WorkHelpers helpers(3);
  DistinctIds distinct;
  for (int batch = 0; batch < 20; ++batch) {
    const std::vector<Ids> inputs = {RandomIds(random, 9000, 1500)};
    const auto spans = Spans(inputs);
    distinct.Begin(spans);
    std::vector<DistinctIds::Range> ranges(distinct.num_groups());
    helpers.ForEach(1 + distinct.num_groups(), [&](size_t i) {
      if (i == 0) return distinct.Divide();
      ranges[i - 1] = distinct.Number(i - 1);
    });
    ExpectNumbered(distinct, inputs);
    int32_t end = 0;
    for (const DistinctIds::Range range : ranges) {
      EXPECT_EQ(range.first, end);
      end += range.size;
    }
    EXPECT_GT(ranges.size(), 4);
    EXPECT_EQ(end, static_cast<int32_t>(distinct.size()));
  }
}

TEST(DistinctIdsTest, AGroupHasItsPlacesInOrder) {
  std::mt19937_64 random(1);
  const Ids ids = RandomIds(random, 6000, 700);
  const absl::Span<const uint64_t> input = ids;
  DistinctIds distinct;
  distinct.Begin(absl::MakeConstSpan(&input, 1));
  distinct.Divide();
  int32_t places = 0;
  for (size_t group = 0; group < distinct.num_groups(); ++group) {
    const DistinctIds::Range range = distinct.Number(group);
    const DistinctIds::GroupPlaces of_group = distinct.PlacesOf(group, range);
    EXPECT_EQ(of_group.first, places);
    places += static_cast<int32_t>(of_group.places.size());
    std::vector<int32_t> counts(range.size), last(range.size, -1);
    for (const DistinctIds::Place& place : of_group.places) {
      EXPECT_EQ(place.hash, RowHash(ids[place.place]));
      EXPECT_EQ(distinct.hashes(range)[place.row], place.hash);
      EXPECT_GT(place.place, last[place.row]);
      last[place.row] = place.place;
      ++counts[place.row];
    }
    EXPECT_THAT(of_group.counts, ElementsAreArray(counts));
  }
  EXPECT_EQ(places, static_cast<int32_t>(ids.size()));
}

TEST(DistinctIdsTest, CountsAreTheNumbersOfPlaces) {
  std::mt19937_64 random(2);
  for (const size_t count : {0, 1, 50, 9000}) {
    const Ids first = RandomIds(random, count, 300),
              second = RandomIds(random, count / 2, 300);
    const std::array<absl::Span<const uint64_t>, 2> inputs = {first, second};
    std::map<uint64_t, uint32_t> places;
    for (const auto& input : inputs) {
      for (const uint64_t id : input) ++places[id];
    }
    DistinctIds distinct;
    distinct.Assign(inputs);
    ASSERT_EQ(distinct.counts().size(), places.size());
    for (size_t i = 0; i < distinct.size(); ++i) {
      EXPECT_EQ(distinct.counts()[i], places[distinct.ids()[i]]);
    }
  }
}

}  // namespace
}  // namespace parasol

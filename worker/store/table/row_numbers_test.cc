#include "worker/store/table/row_numbers.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "base/row_hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

using Ids = std::vector<uint64_t>;

std::vector<uint64_t> Hashes(const Ids& ids) {
  std::vector<uint64_t> hashes;
  for (const uint64_t id : ids) hashes.push_back(RowHash(id));
  return hashes;
}

std::vector<int32_t> Probe(const RowNumbers& rows, const Ids& ids) {
  std::vector<int32_t> probed(ids.size());
  rows.Probe(Hashes(ids), probed.data());
  return probed;
}

std::vector<int32_t> Find(RowNumbers& rows, const Ids& ids) {
  std::vector<int32_t> numbers = Probe(rows, ids);
  rows.Find(Hashes(ids), absl::MakeSpan(numbers));
  return numbers;
}

TEST(RowNumbersTest, MissingRowsAreAddedInTheirOrder) {
  constexpr int32_t kMissing = RowNumbers::kMissing;
  RowNumbers rows;
  rows.Add(Ids{7, 0, UINT64_MAX});
  std::vector<int32_t> numbers = Find(rows, {5, 0, 6, 7});
  EXPECT_THAT(numbers, ElementsAre(kMissing, 1, kMissing, 0));
  EXPECT_THAT(rows.missing(), ElementsAre(5, 6));
  EXPECT_EQ(rows.size(), 3) << "they are not added";
  rows.AddMissing(absl::MakeSpan(numbers));
  EXPECT_THAT(numbers, ElementsAre(3, 1, 4, 0));
  EXPECT_THAT(Find(rows, {6, 5, UINT64_MAX}), ElementsAre(4, 3, 2));
  EXPECT_THAT(rows.missing(), IsEmpty());
  EXPECT_THAT(rows.ids(), ElementsAre(7, 0, UINT64_MAX, 5, 6));
}

TEST(RowNumbersTest, RowsThatWereAddedSinceAProbeAreFound) {
  RowNumbers rows;
  rows.Add(Ids{7});
  const Ids ids = {5, 7, 6};
  std::vector<int32_t> numbers = Probe(rows, ids);
  EXPECT_THAT(numbers,
              ElementsAre(RowNumbers::kMissing, 0, RowNumbers::kMissing));
  rows.Add(Ids{6});
  rows.Find(Hashes(ids), absl::MakeSpan(numbers));
  EXPECT_THAT(numbers, ElementsAre(RowNumbers::kMissing, 0, 1));
  EXPECT_THAT(rows.missing(), ElementsAre(5));
}

TEST(RowNumbersTest, RowsAreThoseOfOthersUntilOneIsDifferent) {
  RowNumbers one, other, another;
  EXPECT_FALSE(one.AreThoseOf(other)) << "they have not been compared";
  one.Add(Ids{7, 5});
  other.Add(Ids{7, 5});
  one.Compare(other);
  EXPECT_TRUE(one.AreThoseOf(other));
  EXPECT_FALSE(one.AreThoseOf(another));
  other.Add(Ids{6});
  EXPECT_FALSE(one.AreThoseOf(other));
  one.Add(Ids{6, 8});
  one.Compare(other);
  EXPECT_FALSE(one.AreThoseOf(other));
  other.Add(Ids{8});
  EXPECT_FALSE(one.AreThoseOf(other)) << "the last has not been compared";
  one.Compare(other);
  EXPECT_TRUE(one.AreThoseOf(other));
  one.Add(Ids{10});
  other.Add(Ids{11});
  one.Compare(other);
  EXPECT_FALSE(one.AreThoseOf(other));
}

TEST(RowNumbersTest, KeepsTheNumbersOfManyRows) {
  constexpr uint64_t kRows = 20'000;
  RowNumbers rows;
  for (uint64_t id = 0; id < kRows; ++id) rows.Add({id * 1'000'003});
  for (uint64_t id = 0; id < kRows; ++id) {
    ASSERT_THAT(Find(rows, {id * 1'000'003}), ElementsAre(id));
  }
}

TEST(RowNumbersTest, AnIdThatIsThereOrComesTwiceIsKnown) {
  RowNumbers rows;
  rows.Add({9});
  EXPECT_THAT(rows.FindKnown({8, 9}), Optional(9));
  EXPECT_THAT(rows.FindKnown({3, 8, 3}), Optional(3));
  EXPECT_EQ(rows.FindKnown({1, 2}), std::nullopt);
}

}  // namespace
}  // namespace parasol

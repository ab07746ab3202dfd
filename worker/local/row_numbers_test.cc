#include "worker/local/row_numbers.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

using Ids = std::vector<uint64_t>;

std::vector<int32_t> Find(RowNumbers& rows, const Ids& ids) {
  std::vector<int32_t> numbers(ids.size());
  rows.Find(ids, absl::MakeSpan(numbers));
  return numbers;
}

TEST(RowNumbersTest, MissingRowsHaveTheNumbersThatTheyAreGiven) {
  RowNumbers rows;
  rows.Add(Ids{7, 0, UINT64_MAX});
  EXPECT_THAT(Find(rows, {5, 0, 6, 7}), ElementsAre(3, 1, 4, 0));
  EXPECT_THAT(rows.missing(), ElementsAre(5, 6));
  EXPECT_EQ(rows.size(), 3) << "they are not added";
  rows.Add(rows.missing());
  EXPECT_THAT(Find(rows, {6, 5, UINT64_MAX}), ElementsAre(4, 3, 2));
  EXPECT_THAT(rows.missing(), IsEmpty());
  EXPECT_THAT(rows.ids(), ElementsAre(7, 0, UINT64_MAX, 5, 6));
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

#include "coordinator/steps/told_batches.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Optional;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

ToldBatches Told(int64_t begin,
                 const std::vector<std::pair<int64_t, int64_t>>& ranges) {
  wire::RegisterRequest request;
  for (const auto& [first, count] : ranges) {
    wire::BatchRange* range = request.add_batch();
    range->set_first(first);
    range->set_count(count);
  }
  return ToldBatches(begin, request.batch());
}

TEST(ToldBatches, StepsFollowEachOtherOverRanges) {
  const ToldBatches told = Told(10, {{100, 3}, {50, 2}});
  EXPECT_THAT(told.From(10).first, Optional(100));
  EXPECT_EQ(told.From(10).count, 3);
  EXPECT_THAT(told.From(12).first, Optional(102));
  EXPECT_EQ(told.From(12).count, 1);
  EXPECT_THAT(told.From(13).first, Optional(50));
}

TEST(ToldBatches, StepsBeforeAndBehindAreNotKnown) {
  const ToldBatches told = Told(10, {{100, 3}});
  EXPECT_EQ(told.From(4).first, std::nullopt);
  EXPECT_EQ(told.From(4).count, 6);
  EXPECT_EQ(told.From(13).first, std::nullopt);
  EXPECT_EQ(told.From(13).count, kMax - 13);
  EXPECT_EQ(ToldBatches().From(0).count, kMax);
}

TEST(ToldBatches, NumbersThatCanNotBeAreNotKnown) {
  EXPECT_EQ(Told(-1, {{5, 1}}).From(0).first, std::nullopt);
  EXPECT_EQ(Told(0, {{5, -1}}).From(0).first, std::nullopt);
  EXPECT_EQ(Told(0, {{kMax, 1}}).From(0).first, std::nullopt);
  EXPECT_EQ(Told(0, {{5, kMax}}).From(0).first, std::nullopt);
  const ToldBatches told = Told(0, {{-7, 2}, {8, 0}, {9, 1}});
  EXPECT_EQ(told.From(0).first, std::nullopt);
  EXPECT_EQ(told.From(0).count, 2);
  EXPECT_THAT(told.From(2).first, Optional(9)) << "the steps stay in place";
}

TEST(ToldBatches, TooManyRangesAreNotTaken) {
  const ToldBatches told = Told(0, std::vector<std::pair<int64_t, int64_t>>(
                                       ToldBatches::kMaxRanges + 1, {3, 1}));
  EXPECT_THAT(told.From(ToldBatches::kMaxRanges - 1).first, Optional(3));
  EXPECT_EQ(told.From(ToldBatches::kMaxRanges).first, std::nullopt);
}

}  // namespace
}  // namespace parasol

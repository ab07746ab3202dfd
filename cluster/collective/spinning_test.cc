#include "cluster/collective/spinning.h"

#include "gmock/gmock.h"

namespace parasol {
namespace {

TEST(SpinningTest, GoesOnAsLongAsItSeesSomething) {
  Spinning spinning;
  for (int wait = 0; wait < 100; ++wait) {
    EXPECT_EQ(spinning.Next(), Spinning::kLongest);
    spinning.Note(true);
  }
}

TEST(SpinningTest, EndsWhenItIsInVainAndIsTriedAgainLater) {
  Spinning spinning;
  absl::Duration spent;
  int waits = 0;
  for (; spinning.Next() > absl::ZeroDuration(); ++waits) {
    ASSERT_LT(waits, 10);
    spent += spinning.Next();
    spinning.Note(false);
  }
  EXPECT_LT(spent, 2 * Spinning::kLongest);
  for (int wait = 2; wait < Spinning::kRetry; ++wait) {
    EXPECT_EQ(spinning.Next(), absl::ZeroDuration()) << wait;
  }
  EXPECT_EQ(spinning.Next(), Spinning::kLongest);
}

TEST(SpinningTest, OneThatSeesSomethingIsAsLongAsEver) {
  Spinning spinning;
  spinning.Note(false);
  EXPECT_EQ(spinning.Next(), Spinning::kLongest / 2);
  spinning.Note(true);
  EXPECT_EQ(spinning.Next(), Spinning::kLongest);
}

}  // namespace
}  // namespace parasol

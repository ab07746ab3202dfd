#include "cluster/checkpoint/model/checkpoint_follower.h"

#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

ListedCheckpoint At(int64_t step, int64_t created = 1) {
  return {.step = step, .created_unix_micros = created};
}
ListedCheckpoint FinalAt(int64_t step, int64_t created = 1) {
  return {.step = step, .created_unix_micros = created, .final = true};
}
ListedCheckpoint DamagedAt(int64_t step) {
  return {.step = step, .damaged = true};
}

// The steps that get a turn while the listing stays as it is.
std::vector<int64_t> Turns(CheckpointFollower& follower,
                           const std::vector<ListedCheckpoint>& listing) {
  std::vector<int64_t> steps;
  while (const auto next = follower.Next(listing)) {
    steps.push_back(next->step);
    follower.Evaluated(*next);
  }
  return steps;
}

TEST(CheckpointFollowerTest, EachCheckpointIsEvaluatedOnceInOrder) {
  CheckpointFollower follower;

  EXPECT_THAT(Turns(follower, {}), ElementsAre());
  EXPECT_THAT(Turns(follower, {At(10), At(20)}), ElementsAre(10, 20));
  EXPECT_THAT(Turns(follower, {At(10), At(20)}), ElementsAre());
  EXPECT_THAT(Turns(follower, {At(20), At(30)}), ElementsAre(30));
}

TEST(CheckpointFollowerTest, OnesThatWerePrunedMeanwhileAreLeftOut) {
  CheckpointFollower follower;
  follower.Evaluated(At(10));

  EXPECT_EQ(follower.Next(std::vector{At(30), At(40)}), At(30));
}

TEST(CheckpointFollowerTest, AReplacedCheckpointIsNew) {
  CheckpointFollower follower;
  follower.Evaluated(At(10, /*created=*/1));

  EXPECT_THAT(Turns(follower, {At(10, /*created=*/2)}), ElementsAre(10));
  EXPECT_THAT(Turns(follower, {FinalAt(10, /*created=*/2)}), ElementsAre(10));
}

TEST(CheckpointFollowerTest, OneBelowTheNewestIsNewWhenTrainingWentBack) {
  CheckpointFollower follower;
  follower.Evaluated(At(10));
  follower.Evaluated(At(30));

  EXPECT_THAT(Turns(follower, {At(10), At(20), At(30)}), ElementsAre(20));
}

TEST(CheckpointFollowerTest, DamagedOnesGetNoTurnAndAreNewsOnce) {
  CheckpointFollower follower;
  const std::vector listing = {DamagedAt(10), At(20), At(30)};

  EXPECT_TRUE(follower.FoundDamaged(DamagedAt(10)));
  EXPECT_FALSE(follower.FoundDamaged(DamagedAt(10)));
  EXPECT_TRUE(follower.FoundDamaged(At(20)));
  EXPECT_THAT(Turns(follower, listing), ElementsAre(30));
}

TEST(CheckpointFollowerTest, ItIsAtTheEndWhenTheNewestIsFinalAndHadItsTurn) {
  CheckpointFollower follower;
  const std::vector listing = {At(10), FinalAt(20)};

  EXPECT_FALSE(follower.IsAtEnd({}));
  EXPECT_FALSE(follower.IsAtEnd(listing));
  follower.Evaluated(FinalAt(20));
  EXPECT_TRUE(follower.IsAtEnd(listing));
}

TEST(CheckpointFollowerTest, AJobThatWasExtendedIsNotAtItsEnd) {
  CheckpointFollower follower;
  follower.Evaluated(FinalAt(20));
  follower.Evaluated(At(30));

  EXPECT_FALSE(follower.IsAtEnd(std::vector{FinalAt(20), At(30)}));
}

TEST(CheckpointFollowerTest, ADamagedFinalCheckpointIsTheEnd) {
  CheckpointFollower follower;
  follower.FoundDamaged(FinalAt(20));

  EXPECT_TRUE(follower.IsAtEnd(std::vector{FinalAt(20)}));
}

// A file, a copy or a damaged directory with a checkpoint's name.
TEST(CheckpointFollowerTest, WhatIsNoCheckpointDoesNotPutTheEndOff) {
  CheckpointFollower follower;
  const std::vector listing = {DamagedAt(10), FinalAt(20), DamagedAt(9998),
                               DamagedAt(9999)};

  EXPECT_FALSE(follower.IsAtEnd(listing));
  EXPECT_THAT(Turns(follower, listing), ElementsAre(20));
  EXPECT_TRUE(follower.IsAtEnd(listing));
  EXPECT_EQ(CheckpointFollower::Newest(listing)->step, 20);
  EXPECT_EQ(CheckpointFollower::Newest(std::vector{DamagedAt(1)}), nullptr);
  EXPECT_FALSE(follower.IsAtEnd(std::vector{DamagedAt(1)}));
}

TEST(CheckpointFollowerTest, WhatIsStillListedIsNotForgotten) {
  CheckpointFollower follower;
  follower.Evaluated(At(10));
  follower.Evaluated(At(20));
  follower.FoundDamaged(At(30));
  const std::vector listing = {At(20), At(30)};
  follower.Forget(listing);

  EXPECT_THAT(Turns(follower, listing), ElementsAre());
  EXPECT_THAT(Turns(follower, {At(10)}), ElementsAre(10));
}

}  // namespace
}  // namespace parasol

#include "cluster/collective/piece_lane.h"

#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Each;

constexpr size_t kPiece = 200'000;

std::vector<std::byte> PieceOf(int value, size_t bytes = kPiece) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

class PieceLaneTest : public testing::Test {
 protected:
  PieceLaneTest() : here_(*PieceLane::Create()), there_(*PieceLane::Create()) {
    EXPECT_OK(here_->Open(there_->offer()));
    EXPECT_OK(there_->Open(here_->offer()));
  }

  // Expects that the next piece is there and has the value everywhere.
  static void ExpectTaken(PieceLane& lane, int value, size_t bytes = kPiece) {
    std::vector<std::byte> taken(bytes);
    ASSERT_TRUE(lane.Take(bytes, taken.data()));
    EXPECT_THAT(taken, Each(static_cast<std::byte>(value)));
  }

  const std::unique_ptr<PieceLane> here_, there_;
};

TEST_F(PieceLaneTest, PiecesComeInOrderBothWays) {
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(here_->Put(PieceOf(round)));
    ASSERT_TRUE(here_->Put(PieceOf(round + 1)));
    ASSERT_TRUE(there_->Put(PieceOf(round + 2)));
    ExpectTaken(*there_, round);
    ExpectTaken(*there_, round + 1);
    ExpectTaken(*here_, round + 2);
  }
}

TEST_F(PieceLaneTest, AFullRingTakesNothingUntilTheOtherEndHasTaken) {
  int put = 0;
  while (here_->Put(PieceOf(put))) ++put;
  EXPECT_EQ(put, 5);
  EXPECT_FALSE(here_->Put(PieceOf(put)));
  ExpectTaken(*there_, 0);
  EXPECT_TRUE(there_->TellsOfRoom());
  EXPECT_FALSE(there_->TellsOfRoom());
  // What does not fit behind the last piece begins in front.
  ExpectTaken(*there_, 1);
  EXPECT_TRUE(here_->Put(PieceOf(put)));
  for (int value = 2; value <= put; ++value) ExpectTaken(*there_, value);
}

TEST_F(PieceLaneTest, APieceMayBeDropped) {
  ASSERT_TRUE(here_->Put(PieceOf(1)));
  ASSERT_TRUE(here_->Put(PieceOf(2)));
  EXPECT_TRUE(there_->Take(kPiece, nullptr));
  ExpectTaken(*there_, 2);
}

TEST_F(PieceLaneTest, WhatIsNotThereIsNotTaken) {
  std::vector<std::byte> taken(kPiece);
  EXPECT_FALSE(there_->Take(kPiece, taken.data()));
  ASSERT_TRUE(here_->Put(PieceOf(1)));
  EXPECT_FALSE(there_->Take(kPiece + 1, taken.data()));
  EXPECT_FALSE(there_->Take(1, taken.data()));
  EXPECT_FALSE(there_->Take(PieceLane::kRingBytes, taken.data()));
  ExpectTaken(*there_, 1);
  EXPECT_FALSE(there_->Take(kPiece, taken.data()));
  EXPECT_THAT(there_->Open("no offer"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// Pieces of all sizes, while both ends work.
TEST_F(PieceLaneTest, PiecesOfAllSizesArriveWhole) {
  constexpr int kPieces = 2000;
  const auto size_of = [](int piece) {
    std::mt19937 random(piece);
    return PieceLane::kLeastBytes +
           random() % (PieceLane::kMostBytes - PieceLane::kLeastBytes + 1);
  };
  std::thread putter([&] {
    for (int piece = 0; piece < kPieces; ++piece) {
      const std::vector<std::byte> bytes = PieceOf(piece, size_of(piece));
      while (!here_->Put(bytes)) std::this_thread::yield();
    }
  });
  int wrong = 0;
  for (int piece = 0; piece < kPieces; ++piece) {
    std::vector<std::byte> taken(size_of(piece));
    while (!there_->Take(taken.size(), taken.data())) {
      std::this_thread::yield();
    }
    for (const std::byte byte : taken) {
      wrong += byte != static_cast<std::byte>(piece);
    }
  }
  putter.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace parasol

#include "ps/lost_questions.h"

#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

constexpr absl::Time kLost = absl::FromUnixSeconds(1000);

TEST(LostQuestionsTest, NobodyIsAskedForBeforeALoss) {
  LostQuestions questions;
  EXPECT_FALSE(questions.Take(kLost));
  EXPECT_EQ(questions.next(), absl::InfiniteFuture());
}

// However busy the thread was: with another task that acts, say.
TEST(LostQuestionsTest, ALossIsAskedForHoweverLate) {
  for (const absl::Duration late :
       {absl::ZeroDuration(), absl::Milliseconds(9), absl::Milliseconds(11),
        absl::Seconds(3), absl::Minutes(1)}) {
    LostQuestions questions;
    questions.NoteLost(kLost);
    EXPECT_EQ(questions.next(), kLost);
    EXPECT_TRUE(questions.Take(kLost + late)) << late;
    EXPECT_FALSE(questions.Take(kLost + late)) << late;
  }
}

TEST(LostQuestionsTest, QuestionsAreEverRarerUntilTheLeaseHasEnded) {
  LostQuestions questions;
  questions.NoteLost(kLost);
  std::vector<absl::Time> asked;
  while (questions.next() != absl::InfiniteFuture()) {
    asked.push_back(questions.next());
    ASSERT_TRUE(questions.Take(questions.next()));
    ASSERT_LT(asked.size(), 100u);
  }
  ASSERT_GT(asked.size(), 10u);
  EXPECT_EQ(asked[0], kLost);
  EXPECT_EQ(asked[1], kLost + LostQuestions::kFirst);
  for (size_t i = 2; i < asked.size(); ++i) {
    EXPECT_GE(asked[i] - asked[i - 1], asked[i - 1] - asked[i - 2]);
    EXPECT_LE(asked[i] - asked[i - 1], LostQuestions::kLongest);
  }
  EXPECT_GT(asked.back(), kLost + LostQuestions::kLimit);
  EXPECT_LT(asked.back(),
            kLost + LostQuestions::kLimit + 2 * LostQuestions::kLongest);
}

TEST(LostQuestionsTest, AnotherLossIsAskedForAtOnce) {
  LostQuestions questions;
  questions.NoteLost(kLost);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(questions.Take(questions.next()));
  const absl::Time again = kLost + absl::Minutes(5);
  questions.NoteLost(again);
  EXPECT_TRUE(questions.Take(again));
  EXPECT_EQ(questions.next(), again + LostQuestions::kFirst);
}

}  // namespace
}  // namespace parasol

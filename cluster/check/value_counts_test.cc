#include "cluster/check/value_counts.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(ValueCountsTest, TheMostFrequentComesFirst) {
  ValueCounts counts;
  for (const char* value : {"b", "c", "a", "c", "d", "c", "a", "b"}) {
    counts.Add(value);
  }
  EXPECT_EQ(counts.all(), 8);
  EXPECT_EQ(counts.distinct(), 4);
  EXPECT_EQ(counts.SeenOnce(), 1);
  EXPECT_EQ(counts.CountOf("c"), 3);
  EXPECT_EQ(counts.CountOf("e"), 0);
  EXPECT_TRUE(counts.is_complete());
  EXPECT_THAT(counts.MostFrequent(3),
              ElementsAre(Pair("c", 3), Pair("a", 2), Pair("b", 2)));
}

TEST(ValueCountsTest, MemoryIsBounded) {
  ValueCounts counts(2);
  for (const char* value : {"a", "b", "c", "a"}) counts.Add(value);
  EXPECT_EQ(counts.distinct(), 2);
  EXPECT_EQ(counts.CountOf("a"), 2);
  EXPECT_FALSE(counts.is_complete());
  ValueCounts of_long_texts;
  of_long_texts.Add(std::string(ValueCounts::kMaxBytes + 1, 'x'));
  EXPECT_EQ(of_long_texts.distinct(), 0);
  EXPECT_FALSE(of_long_texts.is_complete());
}

}  // namespace
}  // namespace parasol

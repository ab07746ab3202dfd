#include "tests/benchmark/click_log/click_log.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol::bench {
namespace {

std::vector<ClickLog::Line> Lines(const ClickLog& log, int day, int count) {
  std::vector<ClickLog::Line> lines;
  for (int i = 0; i < count; ++i) lines.push_back(log.At(day, i));
  return lines;
}

std::set<uint64_t> Items(const std::vector<ClickLog::Line>& lines) {
  std::set<uint64_t> items;
  for (const ClickLog::Line& line : lines) items.insert(line.ids[1]);
  return items;
}

TEST(ClickLogTest, LinesAreWhatTheSeedSays) {
  const ClickLog log({.seed = 5});
  const ClickLog other({.seed = 6});
  EXPECT_EQ(log.At(3, 17).ids, log.At(3, 17).ids);
  EXPECT_NE(log.At(3, 17).ids, log.At(3, 18).ids);
  EXPECT_NE(log.At(3, 17).ids, other.At(3, 17).ids);
}

TEST(ClickLogTest, ClicksFollowTheirProbability) {
  double clicks = 0;
  double expected = 0;
  for (const ClickLog::Line& line : Lines(ClickLog({}), 1, 50'000)) {
    clicks += line.clicked;
    expected += line.probability;
  }
  EXPECT_NEAR(clicks, expected, 4 * std::sqrt(expected));
  EXPECT_GT(clicks, 50'000 * .15);
  EXPECT_LT(clicks, 50'000 * .4);
}

TEST(ClickLogTest, EachDayHasItsShareOfNewIds) {
  const ClickLog log({.new_share = .3});
  const std::vector<ClickLog::Line> second = Lines(log, 1, 50'000);
  const std::set<uint64_t> first = Items(Lines(log, 0, 50'000));
  int64_t known = 0;
  for (const ClickLog::Line& line : second)
    known += first.contains(line.ids[1]);
  // Lines with ids of the first day that it had not drawn are few.
  EXPECT_LT(known, 50'000 * .7);
  EXPECT_GT(known, 50'000 * .35);
}

TEST(ClickLogTest, FewIdsAreInMostLines) {
  const std::vector<ClickLog::Line> lines = Lines(ClickLog({}), 0, 50'000);
  std::map<uint64_t, int> counts;
  for (const ClickLog::Line& line : lines) ++counts[line.ids[1]];
  int once = 0;
  int largest = 0;
  for (const auto& [item, count] : counts) {
    once += count == 1;
    largest = std::max(largest, count);
  }
  EXPECT_GT(once, static_cast<int>(counts.size()) / 2);
  EXPECT_GT(largest, 1000);
}

TEST(ClickLogTest, BestAucIsOfPairsInOrder) {
  using Line = ClickLog::Line;
  const auto line = [](double probability, bool clicked) {
    return Line{.probability = probability, .clicked = clicked};
  };
  EXPECT_EQ(BestAuc({line(.1, false), line(.9, true)}), 1);
  EXPECT_EQ(BestAuc({line(.9, false), line(.1, true)}), 0);
  EXPECT_EQ(BestAuc({line(.5, false), line(.5, true)}), .5);
  EXPECT_EQ(BestAuc({line(.1, false), line(.5, true), line(.5, false)}), .75);
  EXPECT_TRUE(std::isnan(BestAuc({line(.5, true)})));
}

}  // namespace
}  // namespace parasol::bench

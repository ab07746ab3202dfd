#include "worker/store/table/cache_worth.h"

#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::DoubleNear;
using ::testing::Optional;

constexpr CacheWorth::Options kOptions = {
    .batches = 10, .windows = 3, .least_share = .5, .rise = .02};

// Adds a window whose batches have `hits` of 100 rows on the device.
void AddWindow(CacheWorth& worth, int hits) {
  for (int i = 0; i < kOptions.batches; ++i) worth.Add(100, 100 - hits);
}

TEST(CacheWorthTest, ATableWithALowShareForSeveralWindowsIsNotWorthIt) {
  CacheWorth worth(kOptions);
  AddWindow(worth, 40);
  for (int window = 0; window < 3; ++window) {
    EXPECT_EQ(worth.LowShare(), std::nullopt) << window;
    AddWindow(worth, 40 - window);
  }
  EXPECT_THAT(worth.LowShare(), Optional(DoubleNear(.39, 1e-12)));
  EXPECT_EQ(worth.batches(), 30);
}

TEST(CacheWorthTest, AnUnfinishedWindowSaysNothing) {
  CacheWorth worth(kOptions);
  for (int batch = 0; batch < 39; ++batch) worth.Add(100, 90);
  EXPECT_EQ(worth.LowShare(), std::nullopt);
  worth.Add(100, 90);
  EXPECT_THAT(worth.LowShare(), Optional(DoubleNear(.1, 1e-12)));
}

TEST(CacheWorthTest, AShareThatPaysNowAndThenIsWorthIt) {
  CacheWorth worth(kOptions);
  for (int i = 0; i < 20; ++i) {
    AddWindow(worth, i % 3 == 0 ? 50 : 40);
    EXPECT_EQ(worth.LowShare(), std::nullopt);
  }
}

// The first rows of a training are new, and so not there.
TEST(CacheWorthTest, AShareThatRisesHasTime) {
  CacheWorth worth(kOptions);
  for (int hits = 0; hits < 49; hits += 3) {
    AddWindow(worth, hits);
    EXPECT_EQ(worth.LowShare(), std::nullopt);
  }
  AddWindow(worth, 49);
  AddWindow(worth, 49);
  EXPECT_EQ(worth.LowShare(), std::nullopt);
  AddWindow(worth, 49);
  EXPECT_THAT(worth.LowShare(), Optional(DoubleNear(.49, .005)));
}

TEST(CacheWorthTest, WindowsAreWeighedByTheirRows) {
  CacheWorth worth({.batches = 2, .windows = 1, .least_share = .5});
  worth.Add(1000, 100);
  worth.Add(10, 10);
  worth.Add(1000, 100);
  worth.Add(10, 10);
  EXPECT_EQ(worth.LowShare(), std::nullopt);
  worth.Add(1000, 900);
  worth.Add(10, 0);
  EXPECT_THAT(worth.LowShare(), Optional(DoubleNear(110. / 1010, 1e-12)));
}

TEST(CacheWorthTest, BatchesWithoutRowsAreNotCounted) {
  CacheWorth worth({.batches = 1, .windows = 1, .least_share = .5});
  worth.Add(10, 10);
  worth.Add(0, 0);
  EXPECT_EQ(worth.LowShare(), std::nullopt);
  worth.Add(10, 10);
  EXPECT_THAT(worth.LowShare(), Optional(0));
}

TEST(CacheWorthTest, NoTableIsLowWithoutALeastShare) {
  CacheWorth worth({.batches = 1, .windows = 1, .least_share = 0});
  for (int i = 0; i < 10; ++i) worth.Add(10, 10);
  EXPECT_EQ(worth.LowShare(), std::nullopt);
}

}  // namespace
}  // namespace parasol

#include "loop/core/local_iterations.h"

#include <cstdint>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol::loop {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(LocalIterationsTest, TheLastExchangeHasWhatIsLeft) {
  LocalIterations local(4);
  EXPECT_EQ(local.exchanges(), kEndless);
  EXPECT_EQ(local.IterationsOf(3), 12);
  local.EndAfter(10);
  EXPECT_EQ(local.exchanges(), 3);
  EXPECT_EQ(local.IterationsOf(2), 8);
  EXPECT_EQ(local.IterationsOf(3), 10);
  local.EndAfter(12);
  EXPECT_EQ(local.exchanges(), 3);
  EXPECT_EQ(local.IterationsOf(3), 12);
  local.EndAfter(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(local.exchanges(), kEndless);
  EXPECT_EQ(LocalIterations(1).IterationsOf(7), 7);
}

// Whatever the numbers, each iteration is in one exchange, as its place says.
TEST(LocalIterationsTest, EachIterationIsInOneExchange) {
  for (int64_t steps = 1; steps < 6; ++steps) {
    for (int64_t end = 1; end < 13; ++end) {
      LocalIterations local(steps);
      local.EndAfter(end);
      int64_t done = 0;
      for (int64_t n = 0; n < local.exchanges(); ++n) {
        EXPECT_EQ(local.IterationsOf(n), done);
        local.Begin(n);
        do {
          ASSERT_TRUE(local.is_under_way());
          EXPECT_EQ(local.next(), done++);
        } while (!local.Add({}));
        EXPECT_FALSE(local.is_under_way());
        EXPECT_EQ(local.Take().step, n + 1);
      }
      EXPECT_EQ(done, end) << steps;
      EXPECT_EQ(local.IterationsOf(local.exchanges()), end);
    }
  }
}

TEST(LocalIterationsTest, AnExchangeSaysWhatItsIterationsHaveSaid) {
  LocalIterations local(2);
  local.EndAfter(5);
  local.Begin(1);
  EXPECT_FALSE(local.Add({.step = 3,
                          .examples = 8,
                          .loss_sum = 2,
                          .end_step = 5,
                          .values = {{"a", 1}}}));
  EXPECT_TRUE(local.Add({.step = 4,
                         .examples = 4,
                         .loss_sum = .5,
                         .end_step = 5,
                         .values = {{"a", 3}, {"b", 2}}}));
  const Iteration all = local.Take();
  EXPECT_EQ(all.step, 2);
  EXPECT_EQ(all.examples, 12);
  EXPECT_EQ(all.loss_sum, 2.5);
  EXPECT_EQ(all.end_step, 3);
  EXPECT_THAT(all.values,
              ElementsAre(Pair("a", 1), Pair("a", 3), Pair("b", 2)));
  // Nothing of it is in the next one.
  local.Begin(2);
  EXPECT_TRUE(local.Add({.step = 5, .examples = 1}));
  EXPECT_EQ(local.Take().examples, 1);
}

}  // namespace
}  // namespace parasol::loop

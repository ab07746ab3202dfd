#include "tests/benchmark/target.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Eq;
using ::testing::Optional;

FigureOf Figures(std::map<std::string, double> figures) {
  return [figures](const std::string& contender) -> std::optional<double> {
    const auto it = figures.find(contender);
    if (it == figures.end()) return std::nullopt;
    return it->second;
  };
}

TEST(TargetTest, AllNeedsEveryBound) {
  const FigureTarget target = FigureTarget::All({{.5, "tcp"}, {2, "plain"}});
  EXPECT_THAT(IsMet(target, 6, Figures({{"tcp", 10}, {"plain", 3}})),
              Optional(true));
  EXPECT_THAT(IsMet(target, 6, Figures({{"tcp", 13}, {"plain", 3}})),
              Optional(false));
  EXPECT_THAT(IsMet(target, 6, Figures({{"tcp", 10}, {"plain", 4}})),
              Optional(false));
}

TEST(TargetTest, AnyNeedsOneBound) {
  const FigureTarget target = FigureTarget::Any({{100}, {1, "tcp"}});
  EXPECT_THAT(IsMet(target, 100, Figures({{"tcp", 200}})), Optional(true));
  EXPECT_THAT(IsMet(target, 90, Figures({{"tcp", 90}})), Optional(true));
  EXPECT_THAT(IsMet(target, 90, Figures({{"tcp", 91}})), Optional(false));
}

TEST(TargetTest, AtMostWantsLess) {
  EXPECT_THAT(IsMet(FigureTarget::AtMost(50), 50, Figures({})), Optional(true));
  EXPECT_THAT(IsMet(FigureTarget::AtMost(50), 51, Figures({})),
              Optional(false));
}

TEST(TargetTest, WithoutTheOtherContenderNothingIsKnown) {
  EXPECT_THAT(IsMet(FigureTarget::All({{1, "tcp"}}), 5, Figures({})),
              Eq(std::nullopt));
  EXPECT_THAT(IsMet(FigureTarget(), 5, Figures({})), Eq(std::nullopt));
}

TEST(TargetTest, IsDescribedInTheReportsUnit) {
  EXPECT_EQ(
      Describe(FigureTarget::All({{.65, "raw TCP"}, {2.2, "plain gRPC"}}), 1),
      "0.65 x raw TCP and 2.2 x plain gRPC");
  EXPECT_EQ(Describe(FigureTarget::Any({{15e6}, {.42, "raw TCP"}}), 1e-6),
            "15 or 0.42 x raw TCP");
  EXPECT_EQ(Describe(FigureTarget::AtMost(.05), 1e3), "at most 50");
}

}  // namespace
}  // namespace parasol

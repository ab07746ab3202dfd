#include "ml/metric/ranked_groups.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

struct Example {
  uint64_t group;
  float score;
  float label;
  double weight = 1;
};

// Five groups, with ties within and between labels; one has no positive label,
// one no other.
const std::vector<Example> kExamples = {
    {1, .9f, 0}, {1, .8f, 3}, {1, .8f, 1}, {1, .3f, 2}, {1, .1f, 0},
    {1, .1f, 1}, {1, -2, 1},  {2, .5f, 1}, {2, .5f, 0}, {2, .5f, 0},
    {2, .2f, 4}, {3, 1, 0},   {3, 2, 0},   {4, 4, 2},   {5, .1f, 1},
    {5, .7f, 0}, {5, .6f, 1}, {5, .6f, 0}, {5, .9f, 0},
};

RankedGroups Of(const std::vector<Example>& examples) {
  RankedGroups groups;
  for (const Example& e : examples) {
    groups.Add(e.group, e.score, e.label, e.weight);
  }
  return groups;
}

// scikit-learn's roc_auc_score of groups 1, 2 and 5, and numpy's average by
// their sizes.
TEST(RankedGroupsTest, MeanAucIsThatOfScikitLearn) {
  EXPECT_NEAR(Of(kExamples).MeanAuc(), 0.24166666666666664, 1e-15);

  std::vector<Example> weighted = kExamples;
  const double of_1[] = {1, 2, .5, 1, 3, 1, .25};
  const double of_2[] = {1, 1, 2, .5};
  const double of_5[] = {2, 1, 1, .5, 1};
  for (size_t i = 0; i < 7; ++i) weighted[i].weight = of_1[i];
  for (size_t i = 0; i < 4; ++i) weighted[7 + i].weight = of_2[i];
  for (size_t i = 0; i < 5; ++i) weighted[14 + i].weight = of_5[i];
  EXPECT_NEAR(Of(weighted).MeanAuc(), 0.3845146198830409, 1e-15);
}

// The mean of scikit-learn's ndcg_score([2^label - 1], [score], k=k) of groups
// 1, 2 and 5, and 1 for group 4, which has one example.
TEST(RankedGroupsTest, MeanNdcgIsThatOfScikitLearn) {
  const RankedGroups groups = Of(kExamples);
  EXPECT_NEAR(groups.MeanNdcg(1), 0.25555555555555554, 1e-15);
  EXPECT_NEAR(groups.MeanNdcg(2), 0.32964345790240407, 1e-15);
  EXPECT_NEAR(groups.MeanNdcg(3), 0.42008638466001047, 1e-15);
  EXPECT_NEAR(groups.MeanNdcg(10), 0.6549708605051247, 1e-15);
}

// The mean over all permutations of equal scores.
TEST(RankedGroupsTest, MeanRecallIsThatOfAllOrdersOfEqualScores) {
  const RankedGroups groups = Of(kExamples);
  EXPECT_NEAR(groups.MeanRecall(1), (0 + 1 / 6.0 + 1 + 0) / 4, 1e-15);
  EXPECT_NEAR(groups.MeanRecall(2), (.2 + 1 / 3.0 + 1 + 0) / 4, 1e-15);
  EXPECT_NEAR(groups.MeanRecall(3), (.4 + .5 + 1 + .25) / 4, 1e-15);
  EXPECT_EQ(groups.MeanRecall(100), 1);
}

// (3 - 1) and half a gain (2^1 - 1) in the order of the scores; the weight of a
// positive example is its share of a group's recall.
TEST(RankedGroupsTest, WeightsAreFactorsOfGainsAndShares) {
  const RankedGroups groups =
      Of({{7, 3, 0, 9}, {7, 2, 1, .5}, {7, 1, 1, 2}, {7, 4, 1, 0}});
  const double place2 = 1 / std::log2(3.0);
  EXPECT_NEAR(groups.MeanNdcg(3), (.5 * place2 + 2 * .5) / (2 + .5 * place2),
              1e-15);
  // The last example, of weight 0, takes no place.
  EXPECT_NEAR(groups.MeanRecall(2), .5 / 2.5, 1e-15);
}

TEST(RankedGroupsTest, LabelsMayBeLarge) {
  const double place2 = 1 / std::log2(3.0);
  // The gain of the label 3000 is all that counts; it is in the second place.
  EXPECT_NEAR(Of({{7, 3, 1500, 1}, {7, 2, 3000, 1}}).MeanNdcg(2), place2,
              1e-15);
  EXPECT_NEAR(Of({{7, 3, 1500, 1}, {7, 2, 1501, 1}}).MeanNdcg(2),
              (1 + 2 * place2) / (2 + place2), 1e-15);
}

TEST(RankedGroupsTest, TheOrderOfExamplesChangesNoBit) {
  std::mt19937 random(3);
  std::vector<Example> examples;
  for (int i = 0; i < 3000; ++i) {
    examples.push_back({random() % 50 * 0x9E3779B97F4A7C15,
                        static_cast<float>(random() % 40) / 7,
                        static_cast<float>(random() % 4) / 2,
                        static_cast<double>(1 + random() % 9) / 7});
  }
  const RankedGroups want = Of(examples);
  for (int i = 0; i < 5; ++i) {
    std::shuffle(examples.begin(), examples.end(), random);
    RankedGroups got = Of({examples.begin(), examples.begin() + 1000});
    got.Merge(Of({examples.begin() + 1000, examples.end()}));
    EXPECT_EQ(got.MeanAuc(), want.MeanAuc());
    EXPECT_EQ(got.MeanNdcg(5), want.MeanNdcg(5));
    EXPECT_EQ(got.MeanRecall(5), want.MeanRecall(5));
  }
}

TEST(RankedGroupsTest, WithoutAGroupThatCountsAllIsNan) {
  for (const RankedGroups& groups :
       {RankedGroups(), Of({{1, 2, 0}, {1, 3, 0}}), Of({{1, 2, 1, 0}}),
        Of({{1, 2, 1}, {1, std::numeric_limits<float>::quiet_NaN(), 0}})}) {
    EXPECT_TRUE(std::isnan(groups.MeanAuc()));
    EXPECT_TRUE(std::isnan(groups.MeanNdcg(2)));
    EXPECT_TRUE(std::isnan(groups.MeanRecall(2)));
  }
}

}  // namespace
}  // namespace parasol

#include "ml/metric/auc.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

struct Example {
  float score;
  bool positive;
  double weight = 1;
};

// Computes the area by its definition, from every pair.
double AucOfPairs(const std::vector<Example>& examples) {
  double right = 0;
  double all = 0;
  for (const Example& a : examples) {
    for (const Example& b : examples) {
      if (!a.positive || b.positive) continue;
      const double weight = a.weight * b.weight;
      all += weight;
      if (a.score > b.score) right += weight;
      if (a.score == b.score) right += weight / 2;
    }
  }
  return right / all;
}

Auc AucOf(const std::vector<Example>& examples, size_t max_scores = 1 << 20) {
  Auc auc(max_scores);
  for (const Example& example : examples) {
    auc.Add(example.score, example.positive, example.weight);
  }
  return auc;
}

// Logits around 0, the positives' a bit higher.
std::vector<Example> RandomExamples(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Example> examples;
  for (int i = 0; i < count; ++i) {
    const bool positive = i % 3 == 0;
    examples.push_back({normal(random) + (positive ? 0.5f : 0), positive});
  }
  return examples;
}

TEST(AucTest, IsTheShareOfPairsInTheRightOrder) {
  const std::vector<Example> examples = RandomExamples(1000, 1);
  EXPECT_NEAR(AucOf(examples).Value(), AucOfPairs(examples), 1e-12);
}

TEST(AucTest, EqualScoresCountHalf) {
  std::vector<Example> examples = RandomExamples(1000, 2);
  for (Example& example : examples) {
    example.score = std::round(example.score * 2);
  }
  EXPECT_NEAR(AucOf(examples).Value(), AucOfPairs(examples), 1e-12);
  EXPECT_EQ(AucOf({{1, true}, {1, false}}).Value(), .5);
  EXPECT_EQ(AucOf({{0.0f, true}, {-0.0f, false}}).Value(), .5);
}

TEST(AucTest, ExamplesCountByTheirWeights) {
  std::vector<Example> examples = RandomExamples(1000, 3);
  for (size_t i = 0; i < examples.size(); ++i) examples[i].weight = i % 7;
  EXPECT_NEAR(AucOf(examples).Value(), AucOfPairs(examples), 1e-12);
}

TEST(AucTest, ScoresOfBothSignsAndInfiniteOnesAreInOrder) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(AucOf({{-kInfinity, false},
                   {-1e30f, false},
                   {-1, false},
                   {-1e-40f, false},
                   {0, true},
                   {1e-40f, true},
                   {1, true},
                   {kInfinity, true}})
                .Value(),
            1);
}

// 10,000 different scores in at most 512.
TEST(AucTest, WithManyScoresTheErrorIsSmall) {
  const std::vector<Example> examples = RandomExamples(10000, 4);
  const double exact = AucOf(examples).Value();
  EXPECT_NEAR(AucOf(examples, /*max_scores=*/512).Value(), exact, 1e-3);
  EXPECT_NEAR(AucOf(examples, /*max_scores=*/8192).Value(), exact, 2e-6);
}

TEST(AucTest, WithTheFewestScoresTheirSignsAreLeft) {
  EXPECT_NEAR(AucOf({{-1, false},
                     {-2, false},
                     {-3, true},
                     {1, true},
                     {2, true},
                     {3, true},
                     {4, false}},
                    /*max_scores=*/4)
                  .Value(),
              // -3 beside two, 1 to 3 above two and beside one, 4.
              (1 + 3 * 2.5) / 12, 1e-12);
}

TEST(AucTest, MergedPartsAreTheWhole) {
  const std::vector<Example> examples = RandomExamples(10000, 5);
  for (const size_t max_scores : {512, 1 << 20}) {
    SCOPED_TRACE(max_scores);
    Auc merged(max_scores);
    for (int part = 0; part < 10; ++part) {
      merged.Merge(AucOf({examples.begin() + part * 1000,
                          examples.begin() + (part + 1) * 1000},
                         max_scores));
    }
    EXPECT_NEAR(merged.Value(), AucOf(examples, max_scores).Value(),
                max_scores == 512 ? 1e-3 : 1e-12);
  }
}

TEST(AucTest, AfterAPartWithFewerBitsTheOthersLoseThemToo) {
  const std::vector<Example> examples = RandomExamples(10000, 6);
  Auc merged = AucOf({examples.begin(), examples.begin() + 100}, 512);
  merged.Merge(AucOf({examples.begin() + 100, examples.end()}, 512));
  EXPECT_NEAR(merged.Value(), AucOfPairs(examples), 1e-3);
}

TEST(AucTest, WithoutPairsItIsUndefined) {
  EXPECT_TRUE(std::isnan(Auc().Value()));
  EXPECT_TRUE(std::isnan(AucOf({{1, true}, {2, true}}).Value()));
  EXPECT_TRUE(std::isnan(AucOf({{1, false}, {2, false}}).Value()));
  EXPECT_TRUE(std::isnan(AucOf({{1, false}, {2, true, 0}}).Value()));
}

TEST(AucTest, ANanScoreMakesItUndefined) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(AucOf({{1, true}, {0, false}, {kNan, true}}).Value()));
}

// scikit-learn's example of average_precision_score: 0.83…
TEST(AveragePrecisionTest, IsThatOfScikitLearn) {
  EXPECT_NEAR(AucOf({{.1, false}, {.4, false}, {.35, true}, {.8, true}})
                  .AveragePrecision(),
              5.0 / 6, 1e-12);
}

// By its definition, from every pair.
double AveragePrecisionOfPairs(const std::vector<Example>& examples) {
  double sum = 0;
  double positives = 0;
  for (const Example& a : examples) {
    if (!a.positive) continue;
    double right = 0;
    double above = 0;
    for (const Example& b : examples) {
      if (b.score < a.score) continue;
      above += b.weight;
      if (b.positive) right += b.weight;
    }
    sum += a.weight * right / above;
    positives += a.weight;
  }
  return sum / positives;
}

TEST(AveragePrecisionTest, IsItsDefinitionWithTiesAndWeights) {
  std::vector<Example> examples = RandomExamples(1000, 7);
  EXPECT_NEAR(AucOf(examples).AveragePrecision(),
              AveragePrecisionOfPairs(examples), 1e-12);
  for (size_t i = 0; i < examples.size(); ++i) {
    examples[i].score = std::round(examples[i].score * 2);
    examples[i].weight = 1 + i % 5;
  }
  EXPECT_NEAR(AucOf(examples).AveragePrecision(),
              AveragePrecisionOfPairs(examples), 1e-12);
}

TEST(AveragePrecisionTest, WithoutPositivesItIsUndefined) {
  EXPECT_TRUE(std::isnan(AucOf({{1, false}}).AveragePrecision()));
  EXPECT_EQ(AucOf({{1, true}}).AveragePrecision(), 1);
  EXPECT_TRUE(std::isnan(
      AucOf({{1, true}, {std::nanf(""), false}}).AveragePrecision()));
}

}  // namespace
}  // namespace parasol

#include "deploy/local/drawn_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

constexpr int64_t kPixels = 28 * 28;

const uint8_t* Image(const LabelledImages& set, int64_t i) {
  return set.images.pixels.data() + i * kPixels;
}

TEST(DrawnDigitsTest, ImageDependsOnSeedAndNumberOnly) {
  const LabelledImages few = DrawDigits(20, 7);
  const LabelledImages more = DrawDigits(100, 7);
  EXPECT_TRUE(
      std::equal(few.labels.begin(), few.labels.end(), more.labels.begin()));
  EXPECT_TRUE(std::equal(few.images.pixels.begin(), few.images.pixels.end(),
                         more.images.pixels.begin()));
  EXPECT_NE(DrawDigits(20, 8).images.pixels, few.images.pixels);
}

TEST(DrawnDigitsTest, NoTwoImagesAreTheSame) {
  const LabelledImages set = DrawDigits(1000, 1);
  std::set<std::vector<uint8_t>> images;
  for (int64_t i = 0; i < set.images.count; ++i) {
    images.emplace(Image(set, i), Image(set, i) + kPixels);
  }
  EXPECT_EQ(images.size(), 1000);
}

TEST(DrawnDigitsTest, EveryTenHaveEachDigitOnce) {
  const LabelledImages set = DrawDigits(1000, 1);
  for (size_t ten = 0; ten < set.labels.size(); ten += 10) {
    const std::set<uint8_t> digits(set.labels.begin() + ten,
                                   set.labels.begin() + ten + 10);
    EXPECT_EQ(digits.size(), 10);
    EXPECT_EQ(*digits.rbegin(), 9);
  }
}

TEST(DrawnDigitsTest, ACountThatIsNoMultipleOfTenIsKept) {
  const LabelledImages set = DrawDigits(13, 1);
  EXPECT_EQ(set.images.count, 13);
  EXPECT_EQ(set.labels.size(), 13);
  EXPECT_EQ(set.images.pixels.size(), 13 * kPixels);
}

// A shard takes every n-th example: it must not get some of the digits only.
TEST(DrawnDigitsTest, EveryTenthExampleHasAllDigits) {
  const LabelledImages set = DrawDigits(2000, 1);
  std::set<uint8_t> digits;
  for (size_t i = 0; i < set.labels.size(); i += 10) {
    digits.insert(set.labels[i]);
  }
  EXPECT_EQ(digits.size(), 10);
}

TEST(DrawnDigitsTest, EachImageHasInkAndPaper) {
  const LabelledImages set = DrawDigits(1000, 1);
  for (int64_t i = 0; i < set.images.count; ++i) {
    const int64_t inked =
        std::count_if(Image(set, i), Image(set, i) + kPixels,
                      [](uint8_t pixel) { return pixel > 110; });
    EXPECT_GE(inked, 8) << i;
    EXPECT_LE(inked, kPixels / 3) << i;
  }
}

using Template = std::array<double, kPixels>;

std::vector<Template> MeanImages(const LabelledImages& set) {
  std::vector<Template> means(10, Template{});
  for (int64_t i = 0; i < set.images.count; ++i) {
    Template& mean = means[set.labels[i]];
    for (int64_t p = 0; p < kPixels; ++p) mean[p] += Image(set, i)[p];
  }
  for (Template& mean : means) {
    double length = 0;
    for (const double pixel : mean) length += pixel * pixel;
    for (double& pixel : mean) pixel /= std::sqrt(length);
  }
  return means;
}

int MostAlike(const std::vector<Template>& means, const uint8_t* image) {
  std::vector<double> likeness;
  for (const Template& mean : means) {
    double sum = 0;
    for (int64_t p = 0; p < kPixels; ++p) sum += mean[p] * image[p];
    likeness.push_back(sum);
  }
  return static_cast<int>(std::max_element(likeness.begin(), likeness.end()) -
                          likeness.begin());
}

// A mean image per digit is the weakest of models: it must do better than
// chance, but not well.
TEST(DrawnDigitsTest, DigitsAreLearnableButNotTrivial) {
  const std::vector<Template> means = MeanImages(DrawDigits(4000, 1));
  const LabelledImages unseen = DrawDigits(1000, ~uint64_t{1});
  int right = 0;
  for (int64_t i = 0; i < unseen.images.count; ++i) {
    right += MostAlike(means, Image(unseen, i)) == unseen.labels[i];
  }
  EXPECT_GT(right, 500);
  EXPECT_LT(right, 900);
}

}  // namespace
}  // namespace parasol

#include "ml/input/format/image_transform.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/input_shard.h"
#include "ml/input/testing/read_all.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr ImageShape kShape = {.height = 3, .width = 4, .channels = 1};

std::vector<uint8_t> CountingPixels() {
  std::vector<uint8_t> pixels(kShape.pixels());
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = 1 + i;
  return pixels;
}

// In units of 1/255.
std::vector<int> Read(const std::string& transform, uint64_t random) {
  const auto reader =
      ImageReader::Create(kShape, FromText<job::ImageTransform>(transform));
  EXPECT_OK(reader);
  std::vector<float> values;
  const std::vector<uint8_t> pixels = CountingPixels();
  reader->Append(pixels.data(), random, values);
  std::vector<int> bytes;
  for (const float value : values) {
    bytes.push_back(static_cast<int>(value * 255 + 0.5f));
  }
  return bytes;
}

// The image `down` and `right` of the original, zeros where that is outside.
std::vector<int> Window(int down, int right, bool flipped) {
  std::vector<int> bytes;
  for (int y = 0; y < kShape.height; ++y) {
    for (int x = 0; x < kShape.width; ++x) {
      const int from_y = y + down;
      const int from_x = (flipped ? kShape.width - 1 - x : x) + right;
      const bool inside = from_y >= 0 && from_y < kShape.height &&
                          from_x >= 0 && from_x < kShape.width;
      bytes.push_back(inside ? 1 + from_y * kShape.width + from_x : 0);
    }
  }
  return bytes;
}

TEST(ImageTransformTest, WithoutATransformItIsTheImage) {
  EXPECT_EQ(Read("", ~uint64_t{0}), Window(0, 0, false));
}

TEST(ImageTransformTest, EveryWindowAndItsMirrorImageComeUp) {
  std::set<std::vector<int>> want;
  for (int down = -1; down <= 1; ++down) {
    for (int right = -1; right <= 1; ++right) {
      want.insert(Window(down, right, false));
      want.insert(Window(down, right, true));
    }
  }
  std::set<std::vector<int>> seen;
  for (uint64_t i = 0; i < 500; ++i) {
    seen.insert(
        Read("random_crop_padding: 1 random_flip: true", RandomBits(1, i)));
  }
  EXPECT_EQ(seen, want);
}

TEST(ImageTransformTest, WindowsMayLieOutsideOfTheImage) {
  std::set<std::vector<int>> want;
  for (int down = -5; down <= 5; ++down) {
    for (int right = -5; right <= 5; ++right) {
      want.insert(Window(down, right, false));
      want.insert(Window(down, right, true));
    }
  }
  std::set<std::vector<int>> seen;
  for (uint64_t i = 0; i < 5000; ++i) {
    seen.insert(
        Read("random_crop_padding: 5 random_flip: true", RandomBits(1, i)));
  }
  EXPECT_EQ(seen, want);
}

TEST(ImageTransformTest, ChannelsMoveTogether) {
  constexpr ImageShape kColours = {.height = 2, .width = 3, .channels = 3};
  const auto reader = ImageReader::Create(
      kColours, FromText<job::ImageTransform>(
                    "random_crop_padding: 4 random_flip: true"));
  ASSERT_OK(reader);
  // Pixels by channel: the second is the first plus 50, the third plus 100.
  std::vector<uint8_t> planes;
  for (int i = 0; i < 18; ++i) planes.push_back(1 + i % 6 + i / 6 * 50);
  for (uint64_t i = 0; i < 500; ++i) {
    std::vector<float> values;
    reader->Append(planes.data(), RandomBits(2, i), values);
    ASSERT_EQ(values.size(), 18u);
    for (size_t pixel = 0; pixel < 18; pixel += 3) {
      const float first = values[pixel] * 255;
      const float step = first > 0 ? 50 : 0;
      EXPECT_FLOAT_EQ(values[pixel + 1] * 255, first + step);
      EXPECT_FLOAT_EQ(values[pixel + 2] * 255, first + 2 * step);
    }
  }
}

TEST(ImageTransformTest, SettingsThatDoNotFitAreNamed) {
  const struct {
    std::string transform;
    std::string want;
  } cases[] = {
      {"mean: [1, 2]", "image.mean has 2 numbers; the images have 1 channels"},
      {"stddev: [1, 2]", "image.stddev has 2 numbers"},
      {"stddev: 0", "image.stddev 0 is not above 0"},
      {"random_crop_padding: -1", "image.random_crop_padding -1 is not in 0"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(
        ImageReader::Create(kShape, FromText<job::ImageTransform>(c.transform)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

}  // namespace
}  // namespace parasol

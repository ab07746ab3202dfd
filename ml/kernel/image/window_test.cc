#include "ml/kernel/image/window.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

constexpr auto kSame = WindowPadding::kSame;
constexpr auto kValid = WindowPadding::kValid;

TEST(WindowTest, WindowsAndPaddingAreThoseOfKeras) {
  struct Case {
    int64_t input, window, stride;
    WindowPadding padding;
    int64_t output, before, after;
  };
  const Case cases[] = {
      {28, 5, 1, kSame, 28, 2, 2},  {32, 3, 2, kSame, 16, 0, 1},
      {7, 3, 2, kSame, 4, 1, 1},    {8, 2, 1, kSame, 8, 0, 1},
      {9, 1, 3, kSame, 3, 0, 0},    {2, 5, 5, kSame, 1, 1, 2},
      {28, 5, 1, kValid, 24, 0, 0}, {10, 3, 4, kValid, 2, 0, 0},
      {5, 5, 1, kValid, 1, 0, 0},   {4, 5, 1, kValid, 0, 0, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.input, " by ", c.window, "/", c.stride));
    const WindowAxis axis = FitWindow(c.input, c.window, c.stride, c.padding);
    EXPECT_EQ(axis.output, c.output);
    EXPECT_EQ(axis.before, c.before);
    if (c.output > 0) {
      EXPECT_EQ(axis.after(), c.after);
    }
  }
}

TEST(WindowTest, WindowsInsideAreThoseWhosePixelIsInTheImage) {
  for (int64_t input : {1, 2, 5, 8}) {
    for (int64_t window : {1, 2, 3, 7}) {
      for (int64_t stride : {1, 2, 3, 9}) {
        const WindowAxis axis = FitWindow(input, window, stride, kSame);
        for (int64_t k = 0; k < window; ++k) {
          for (int64_t o = 0; o < axis.output; ++o) {
            const int64_t pixel = axis.Pixel(o, k);
            EXPECT_EQ(o >= axis.FirstInside(k) && o < axis.LastInside(k),
                      pixel >= 0 && pixel < input)
                << input << " by " << window << "/" << stride << ", window "
                << o << ", position " << k;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace parasol

#include "ml/kernel/image/winograd.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/kernel/image/convolution_shape.h"
#include "ml/kernel/image/window.h"
#include "ml/kernel/testing/reference_image.h"

namespace parasol::cpu {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

using Floats = std::vector<float>;

constexpr auto kSame = WindowPadding::kSame;
constexpr auto kValid = WindowPadding::kValid;
// A value that no result has.
constexpr float kUntouched = 12345;
// Floats before and behind every array; the arrays begin at any address.
constexpr int64_t kMargin = 3;

ConvolutionShape ShapeOf(int64_t examples, int64_t height, int64_t width,
                         int64_t channels, int64_t filters,
                         WindowPadding padding = kSame) {
  return {.examples = examples,
          .height = FitWindow(height, 3, 1, padding),
          .width = FitWindow(width, 3, 1, padding),
          .channels = channels,
          .filters = filters};
}

// All numbers of tiles in a block, and blocks that are not full; images of an
// even and an odd number of pixels along each axis; filters that fill one
// vector, two and three.
const ConvolutionShape kShapes[] = {
    ShapeOf(1, 4, 4, 16, 16),
    ShapeOf(2, 8, 8, 16, 16),
    ShapeOf(3, 7, 8, 16, 48),
    ShapeOf(2, 8, 9, 48, 16),
    ShapeOf(5, 9, 7, 32, 32),
    ShapeOf(3, 10, 9, 16, 32, kValid),
    ShapeOf(1, 9, 11, 32, 16, kValid),
    ShapeOf(2, 8, 8, 64, 64),
    ShapeOf(9, 4, 4, 64, 48),
    ShapeOf(3, 12, 10, 128, 128),
    ShapeOf(1, 40, 6, 128, 144),
    // Padding on one side alone.
    {.examples = 2,
     .height = {.input = 8, .window = 3, .before = 2, .output = 8},
     .width = {.input = 8, .window = 3, .before = 0, .output = 8},
     .channels = 16,
     .filters = 16},
};

std::string NameOf(const ConvolutionShape& s) {
  return absl::StrCat(s.examples, " images of ", s.height.input, " x ",
                      s.width.input, " x ", s.channels, " to ", s.height.output,
                      " x ", s.width.output, " x ", s.filters);
}

Floats Random(int64_t size, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats values(size);
  for (float& value : values) value = uniform(engine);
  return values;
}

std::vector<double> Doubles(const Floats& values) {
  return std::vector<double>(values.begin(), values.end());
}

// Sums of `terms` products of values below 1 are some sqrt(terms) large.
float Tolerance(int64_t terms) {
  return 32 * std::ldexp(1.0f, -24) * std::sqrt(static_cast<float>(terms));
}

double LargestError(const Floats& got, const std::vector<double>& want) {
  double largest = got.size() == want.size() ? 0 : HUGE_VAL;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    const double error = std::fabs(got[i] - want[i]);
    // Written so that NaN counts.
    if (!(error <= largest)) largest = error;
  }
  return largest;
}

// Values between NaN, which no result may depend on.
class Surrounded {
 public:
  explicit Surrounded(const Floats& values)
      : values_(values.size() + 2 * kNans,
                std::numeric_limits<float>::quiet_NaN()) {
    std::copy(values.begin(), values.end(), values_.begin() + kNans);
  }
  const float* data() const { return values_.data() + kNans; }

 private:
  // More than a vector.
  static constexpr int64_t kNans = 37;
  Floats values_;
};

// An array between margins.
class Guarded {
 public:
  explicit Guarded(int64_t size) : values_(size + 2 * kMargin, kUntouched) {}

  float* data() { return values_.data() + kMargin; }
  Floats values() const {
    return Floats(values_.begin() + kMargin, values_.end() - kMargin);
  }
  bool HasMargins() const {
    const auto is_untouched = [](float value) { return value == kUntouched; };
    return std::all_of(values_.begin(), values_.begin() + kMargin,
                       is_untouched) &&
           std::all_of(values_.end() - kMargin, values_.end(), is_untouched);
  }

 private:
  Floats values_;
};

struct Passes {
  Floats y, dkernel, dx;
};

class WinogradTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Winograd::Fits(ShapeOf(1, 8, 8, 16, 16))) {
      GTEST_SKIP() << "this processor has no AVX-512";
    }
  }

  static std::unique_ptr<Device> Open(int threads = 1) {
    return *Device::Open("cpu", {.threads = threads});
  }

  static int64_t KernelSize(const ConvolutionShape& shape) {
    return shape.window_size() * shape.filters;
  }

  static Passes Compute(const ConvolutionShape& shape, const Floats& x,
                        const Floats& kernel, const Floats& dy,
                        int threads = 1) {
    const std::unique_ptr<Device> device = Open(threads);
    Winograd winograd(*device, shape);
    // What passes over other arrays leave in the scratch memory changes
    // nothing.
    Run(winograd, shape, Random(shape.x_size(), 101),
        Random(KernelSize(shape), 102), Random(shape.y_size(), 103));
    return Run(winograd, shape, x, kernel, dy);
  }

 private:
  static Passes Run(Winograd& winograd, const ConvolutionShape& shape,
                    const Floats& x, const Floats& kernel, const Floats& dy) {
    const Surrounded pixels(x), factors(kernel), gradients(dy);
    Guarded y(shape.y_size());
    Guarded dkernel(KernelSize(shape));
    Guarded dx(shape.x_size());
    EXPECT_OK(winograd.Forward(pixels.data(), factors.data(), nullptr,
                               Epilogue::kNone, y.data()));
    EXPECT_OK(winograd.KernelGradient(pixels.data(), gradients.data(),
                                      dkernel.data()));
    EXPECT_OK(
        winograd.InputGradient(gradients.data(), factors.data(), dx.data()));
    EXPECT_TRUE(y.HasMargins());
    EXPECT_TRUE(dkernel.HasMargins());
    EXPECT_TRUE(dx.HasMargins());
    return {y.values(), dkernel.values(), dx.values()};
  }
};

TEST_F(WinogradTest, AllPassesAreTheReference) {
  for (const ConvolutionShape& shape : kShapes) {
    SCOPED_TRACE(NameOf(shape));
    const Floats x = Random(shape.x_size(), 1);
    const Floats kernel = Random(KernelSize(shape), 2);
    const Floats dy = Random(shape.y_size(), 3);
    const Passes passes = Compute(shape, x, kernel, dy);
    EXPECT_LT(
        LargestError(passes.y, reference::Convolution(shape, Doubles(x),
                                                      Doubles(kernel), {})),
        Tolerance(shape.window_size()));
    EXPECT_LT(LargestError(passes.dkernel, reference::ConvolutionKernelGradient(
                                               shape, Doubles(x), Doubles(dy))),
              Tolerance(shape.outputs()));
    EXPECT_LT(LargestError(passes.dx, reference::ConvolutionInputGradient(
                                          shape, Doubles(dy), Doubles(kernel))),
              Tolerance(9 * shape.filters));
  }
}

// The mean error of sums over windows in float32, added one by one, is the
// measure.
TEST_F(WinogradTest, RoundsAboutAsSumsOverWindowsDo) {
  const ConvolutionShape shape = ShapeOf(2, 8, 8, 64, 64, kValid);
  const Floats x = Random(shape.x_size(), 1);
  const Floats kernel = Random(KernelSize(shape), 2);
  const Floats dy = Random(shape.y_size(), 3);
  const std::vector<double> want =
      reference::Convolution(shape, Doubles(x), Doubles(kernel), {});
  const Floats got = Compute(shape, x, kernel, dy).y;
  double error = 0;
  double plain_error = 0;
  for (int64_t i = 0; i < shape.y_size(); ++i) {
    const int64_t filter = i % shape.filters;
    const int64_t column = i / shape.filters % shape.width.output;
    const int64_t row =
        i / shape.filters / shape.width.output % shape.height.output;
    const int64_t example =
        i / shape.filters / shape.width.output / shape.height.output;
    float sum = 0;
    for (int64_t k = 0; k < shape.window_size(); ++k) {
      const int64_t pixel_row = row + k / shape.channels / 3;
      const int64_t pixel_column = column + k / shape.channels % 3;
      sum += x[((example * shape.height.input + pixel_row) * shape.width.input +
                pixel_column) *
                   shape.channels +
               k % shape.channels] *
             kernel[k * shape.filters + filter];
    }
    error += std::fabs(got[i] - want[i]);
    plain_error += std::fabs(sum - want[i]);
  }
  EXPECT_LT(error, 1.5 * plain_error);
}

TEST_F(WinogradTest, BiasAndReluAreAdded) {
  const ConvolutionShape shape = ShapeOf(2, 7, 8, 16, 48);
  const Floats x = Random(shape.x_size(), 1);
  const Floats kernel = Random(KernelSize(shape), 2);
  const Floats bias = Random(shape.filters, 3);
  const std::unique_ptr<Device> device = Open();
  Winograd winograd(*device, shape);
  Floats y(shape.y_size());
  EXPECT_OK(winograd.Forward(x.data(), kernel.data(), bias.data(),
                             Epilogue::kRelu, y.data()));
  std::vector<double> want =
      reference::Convolution(shape, Doubles(x), Doubles(kernel), Doubles(bias));
  for (double& value : want) value = std::max(value, 0.0);
  EXPECT_LT(LargestError(y, want), Tolerance(shape.window_size()));
}

TEST_F(WinogradTest, ReluKeepsNan) {
  const ConvolutionShape shape = ShapeOf(1, 8, 8, 16, 16);
  Floats x = Random(shape.x_size(), 1);
  x[0] = std::numeric_limits<float>::quiet_NaN();
  const Floats kernel = Random(KernelSize(shape), 2);
  const std::unique_ptr<Device> device = Open();
  Winograd winograd(*device, shape);
  Floats y(shape.y_size());
  EXPECT_OK(winograd.Forward(x.data(), kernel.data(), nullptr, Epilogue::kRelu,
                             y.data()));
  EXPECT_TRUE(std::isnan(y[0]));
  // Pixel [0, 0] is in the window of pixel [1, 1], and its tile ends there.
  EXPECT_FALSE(std::isnan(y[2 * shape.filters]));
}

TEST_F(WinogradTest, TwoThreadsHaveTheBitsOfOneButForSumsOverTiles) {
  // Enough tiles for two threads.
  const ConvolutionShape shape = ShapeOf(8, 17, 16, 32, 32);
  const Floats x = Random(shape.x_size(), 1);
  const Floats kernel = Random(KernelSize(shape), 2);
  const Floats dy = Random(shape.y_size(), 3);
  const Passes one = Compute(shape, x, kernel, dy, /*threads=*/1);
  const Passes two = Compute(shape, x, kernel, dy, /*threads=*/2);
  EXPECT_EQ(one.y, two.y);
  EXPECT_EQ(one.dx, two.dx);
  EXPECT_NE(one.dkernel, two.dkernel);
  EXPECT_THAT(two.dkernel,
              Pointwise(FloatNear(Tolerance(shape.outputs())), one.dkernel));
  EXPECT_EQ(two.dkernel, Compute(shape, x, kernel, dy, /*threads=*/2).dkernel);
}

TEST_F(WinogradTest, AnExampleHasTheSameBitsAnywhereInABatch) {
  const ConvolutionShape shape = ShapeOf(3, 7, 9, 32, 16);
  const ConvolutionShape alone = ShapeOf(1, 7, 9, 32, 16);
  const Floats x = Random(shape.x_size(), 1);
  const Floats kernel = Random(KernelSize(shape), 2);
  const Floats dy = Random(shape.y_size(), 3);
  const Passes all = Compute(shape, x, kernel, dy);
  const int64_t last_x = 2 * alone.x_size();
  const int64_t last_y = 2 * alone.y_size();
  const Passes last = Compute(alone, Floats(x.begin() + last_x, x.end()),
                              kernel, Floats(dy.begin() + last_y, dy.end()));
  EXPECT_EQ(last.y, Floats(all.y.begin() + last_y, all.y.end()));
  EXPECT_EQ(last.dx, Floats(all.dx.begin() + last_x, all.dx.end()));
}

TEST_F(WinogradTest, ThreadsMayBeMoreThanBlocks) {
  const ConvolutionShape shape = ShapeOf(1, 12, 12, 128, 128);
  const Floats x = Random(shape.x_size(), 1);
  const Floats kernel = Random(KernelSize(shape), 2);
  const Floats dy = Random(shape.y_size(), 3);
  const Passes one = Compute(shape, x, kernel, dy, /*threads=*/1);
  const Passes many = Compute(shape, x, kernel, dy, /*threads=*/7);
  EXPECT_EQ(one.y, many.y);
  EXPECT_EQ(one.dx, many.dx);
}

TEST_F(WinogradTest, FitsWindowsOfThreePixelsAndWholeVectorsOnly) {
  EXPECT_TRUE(Winograd::Fits(ShapeOf(1, 4, 4, 16, 16)));
  EXPECT_TRUE(Winograd::Fits(ShapeOf(32, 7, 7, 256, 256)));
  EXPECT_FALSE(Winograd::Fits(ShapeOf(1, 8, 8, 3, 16)));
  EXPECT_FALSE(Winograd::Fits(ShapeOf(1, 8, 8, 16, 24)));
  // Half of a tile of 2 pixels and most of one of 5 is wasted.
  EXPECT_FALSE(Winograd::Fits(ShapeOf(1, 8, 2, 16, 16)));
  EXPECT_FALSE(Winograd::Fits(ShapeOf(1, 5, 8, 16, 16)));
  EXPECT_FALSE(Winograd::Fits(ShapeOf(1, 8, 8, 512, 512)));
  for (const auto& [window, stride] :
       {std::pair(1, 1), std::pair(5, 1), std::pair(3, 2)}) {
    ConvolutionShape other = ShapeOf(1, 8, 8, 16, 16);
    other.width = FitWindow(8, window, stride, kSame);
    EXPECT_FALSE(Winograd::Fits(other)) << window << " " << stride;
  }
}

}  // namespace
}  // namespace parasol::cpu

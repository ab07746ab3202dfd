#include "ml/kernel/testing/reference_image.h"

#include <cmath>

#include "absl/functional/function_ref.h"

namespace parasol::reference {
namespace {

// Calls body(x, w, y) for every product x · w that is a term of y: positions in
// the three arrays.
void ForEachProduct(
    const ConvolutionShape& s,
    absl::FunctionRef<void(int64_t x, int64_t w, int64_t y)> body) {
  for (int64_t output = 0; output < s.outputs(); ++output) {
    const int64_t j = output % s.width.output;
    const int64_t i = output / s.width.output % s.height.output;
    const int64_t n = output / s.width.output / s.height.output;
    for (int64_t k = 0; k < s.height.window; ++k) {
      const int64_t row = i * s.height.stride + k - s.height.before;
      if (row < 0 || row >= s.height.input) continue;
      for (int64_t l = 0; l < s.width.window; ++l) {
        const int64_t column = j * s.width.stride + l - s.width.before;
        if (column < 0 || column >= s.width.input) continue;
        for (int64_t c = 0; c < s.channels; ++c) {
          const int64_t x =
              ((n * s.height.input + row) * s.width.input + column) *
                  s.channels +
              c;
          for (int64_t f = 0; f < s.filters; ++f) {
            body(x, ((k * s.width.window + l) * s.channels + c) * s.filters + f,
                 output * s.filters + f);
          }
        }
      }
    }
  }
}

// Returns the indices in x of the pixels of the window of output element `y`,
// row by row.
std::vector<int64_t> PixelsOf(const PoolingShape& s, int64_t y) {
  const int64_t c = y % s.channels;
  const int64_t j = y / s.channels % s.width.output;
  const int64_t i = y / s.channels / s.width.output % s.height.output;
  const int64_t n = y / s.channels / s.width.output / s.height.output;
  std::vector<int64_t> pixels;
  for (int64_t k = 0; k < s.height.window; ++k) {
    for (int64_t l = 0; l < s.width.window; ++l) {
      const int64_t row = i * s.height.stride + k - s.height.before;
      const int64_t column = j * s.width.stride + l - s.width.before;
      if (row < 0 || row >= s.height.input) continue;
      if (column < 0 || column >= s.width.input) continue;
      pixels.push_back(((n * s.height.input + row) * s.width.input + column) *
                           s.channels +
                       c);
    }
  }
  return pixels;
}

int64_t FirstLargest(absl::Span<const int64_t> pixels,
                     absl::Span<const double> x) {
  int64_t largest = pixels[0];
  for (const int64_t pixel : pixels) {
    if (x[pixel] > x[largest]) largest = pixel;
  }
  return largest;
}

}  // namespace

Values Convolution(const ConvolutionShape& shape, absl::Span<const double> x,
                   absl::Span<const double> kernel,
                   absl::Span<const double> bias) {
  Values y(shape.y_size());
  for (size_t i = 0; i < y.size() && !bias.empty(); ++i) {
    y[i] = bias[i % bias.size()];
  }
  ForEachProduct(shape, [&](int64_t in, int64_t w, int64_t out) {
    y[out] += x[in] * kernel[w];
  });
  return y;
}

Values ConvolutionKernelGradient(const ConvolutionShape& shape,
                                 absl::Span<const double> x,
                                 absl::Span<const double> dy) {
  Values dkernel(shape.window_size() * shape.filters);
  ForEachProduct(shape, [&](int64_t in, int64_t w, int64_t out) {
    dkernel[w] += x[in] * dy[out];
  });
  return dkernel;
}

Values ConvolutionInputGradient(const ConvolutionShape& shape,
                                absl::Span<const double> dy,
                                absl::Span<const double> kernel) {
  Values dx(shape.x_size());
  ForEachProduct(shape, [&](int64_t in, int64_t w, int64_t out) {
    dx[in] += dy[out] * kernel[w];
  });
  return dx;
}

ChannelMoments MomentsOf(absl::Span<const double> x, int64_t channels) {
  ChannelMoments moments = {Values(channels), Values(channels)};
  const double rows = static_cast<double>(x.size()) / channels;
  for (size_t i = 0; i < x.size(); ++i) {
    moments.mean[i % channels] += x[i] / rows;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = x[i] - moments.mean[i % channels];
    moments.variance[i % channels] += difference * difference / rows;
  }
  return moments;
}

Values BatchNormalization(absl::Span<const double> x,
                          const ChannelMoments& moments,
                          absl::Span<const double> gamma,
                          absl::Span<const double> beta, double epsilon) {
  Values y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % moments.mean.size();
    y[i] = (x[i] - moments.mean[c]) / std::sqrt(moments.variance[c] + epsilon);
    if (!gamma.empty()) y[i] *= gamma[c];
    if (!beta.empty()) y[i] += beta[c];
  }
  return y;
}

Values Pooling(const PoolingShape& shape, absl::Span<const double> x) {
  Values y(shape.y_size());
  for (size_t i = 0; i < y.size(); ++i) {
    const std::vector<int64_t> pixels = PixelsOf(shape, i);
    if (shape.kind == PoolingShape::Kind::kMax) {
      y[i] = x[FirstLargest(pixels, x)];
      continue;
    }
    for (const int64_t pixel : pixels) y[i] += x[pixel] / pixels.size();
  }
  return y;
}

Values PoolingInputGradient(const PoolingShape& shape,
                            absl::Span<const double> x,
                            absl::Span<const double> dy) {
  Values dx(shape.x_size());
  for (size_t i = 0; i < dy.size(); ++i) {
    const std::vector<int64_t> pixels = PixelsOf(shape, i);
    if (shape.kind == PoolingShape::Kind::kMax) {
      dx[FirstLargest(pixels, x)] += dy[i];
      continue;
    }
    for (const int64_t pixel : pixels) dx[pixel] += dy[i] / pixels.size();
  }
  return dx;
}

}  // namespace parasol::reference

#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/device/parallel.h"
#include "ml/kernel/image/depthwise.h"

namespace parasol::cpu {
namespace {

// Number of multiplications that one thread does in some 10 µs.
constexpr int64_t kGrain = 1 << 16;

// One element of the windows of a row of outputs, and the row of pixels that it
// meets: output `first` meets the pixel `pixel`, the next one the pixel
// `stride` further.
struct Run {
  int64_t first;
  int64_t last;
  int64_t pixel;
  int64_t stride;
  int64_t channels;
  int64_t multiplier;

  int64_t filters() const { return channels * multiplier; }
};

// The outputs along the width whose element `l` is a pixel.
Run RunOf(const DepthwiseShape& s, int64_t l) {
  const int64_t offset = l * s.width_dilation;
  const int64_t first = s.width.FirstInside(offset);
  return {.first = first,
          .last = s.width.LastInside(offset),
          .pixel = s.width.Pixel(first, offset),
          .stride = s.width.stride,
          .channels = s.channels,
          .multiplier = s.multiplier};
}

// Of pixels with `channels` numbers, and outputs with `filters` each.
PARASOL_MULTIVERSION void AddProducts(const Run& run, const float* x,
                                      const float* w, float* y) {
  const int64_t filters = run.filters();
  for (int64_t j = run.first; j < run.last; ++j) {
    const float* const pixel =
        x + (run.pixel + (j - run.first) * run.stride) * run.channels;
    float* const out = y + j * filters;
    if (run.multiplier == 1) {
      PARASOL_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < filters; ++c) out[c] += pixel[c] * w[c];
      continue;
    }
    for (int64_t c = 0; c < run.channels; ++c) {
      for (int64_t q = c * run.multiplier; q < (c + 1) * run.multiplier; ++q) {
        out[q] += pixel[c] * w[q];
      }
    }
  }
}

PARASOL_MULTIVERSION void AddKernelGradient(const Run& run, const float* x,
                                            const float* dy, float* dw) {
  const int64_t filters = run.filters();
  for (int64_t j = run.first; j < run.last; ++j) {
    const float* const pixel =
        x + (run.pixel + (j - run.first) * run.stride) * run.channels;
    const float* const out = dy + j * filters;
    if (run.multiplier == 1) {
      PARASOL_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < filters; ++c) dw[c] += pixel[c] * out[c];
      continue;
    }
    for (int64_t c = 0; c < run.channels; ++c) {
      for (int64_t q = c * run.multiplier; q < (c + 1) * run.multiplier; ++q) {
        dw[q] += pixel[c] * out[q];
      }
    }
  }
}

PARASOL_MULTIVERSION void AddInputGradient(const Run& run, const float* dy,
                                           const float* w, float* dx) {
  const int64_t filters = run.filters();
  for (int64_t j = run.first; j < run.last; ++j) {
    float* const pixel =
        dx + (run.pixel + (j - run.first) * run.stride) * run.channels;
    const float* const out = dy + j * filters;
    if (run.multiplier == 1) {
      PARASOL_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < filters; ++c) pixel[c] += out[c] * w[c];
      continue;
    }
    for (int64_t c = 0; c < run.channels; ++c) {
      for (int64_t q = c * run.multiplier; q < (c + 1) * run.multiplier; ++q) {
        pixel[c] += out[q] * w[q];
      }
    }
  }
}

// Where rows and elements of the arrays begin.
struct Places {
  explicit Places(const DepthwiseShape& s)
      : x_row(s.width.input * s.channels),
        y_row(s.width.output * s.filters()),
        filters(s.filters()) {}

  int64_t x_row;
  int64_t y_row;
  int64_t filters;
};

}  // namespace

absl::Status Depthwise(Device& device, const DepthwiseShape& shape,
                       const float* x, const float* kernel, float* y) {
  const DepthwiseShape& s = shape;
  const Places places(s);
  const int64_t work = places.y_row * s.rows() * s.columns();
  ParallelFor(
      device, s.examples * s.height.output,
      kGrain / std::max<int64_t>(work, 1) + 1,
      [&](int64_t /*part*/, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t n = row / s.height.output;
          float* const out = y + row * places.y_row;
          std::fill_n(out, places.y_row, 0.0f);
          for (int64_t k = 0; k < s.rows(); ++k) {
            const int64_t i =
                s.height.Pixel(row % s.height.output, k * s.height_dilation);
            if (i < 0 || i >= s.height.input) continue;
            const float* const in = x + (n * s.height.input + i) * places.x_row;
            for (int64_t l = 0; l < s.columns(); ++l) {
              AddProducts(RunOf(s, l), in,
                          kernel + (k * s.columns() + l) * places.filters, out);
            }
          }
        }
      });
  return absl::OkStatus();
}

// Each element of a window is one thread's, so the order of its sum is the same
// for any number of threads.
absl::Status DepthwiseKernelGradient(Device& device,
                                     const DepthwiseShape& shape,
                                     const float* x, const float* dy,
                                     float* dkernel) {
  const DepthwiseShape& s = shape;
  const Places places(s);
  ParallelFor(
      device, s.rows() * s.columns(),
      kGrain / std::max<int64_t>(s.y_size(), 1) + 1,
      [&](int64_t /*part*/, int64_t begin, int64_t end) {
        for (int64_t element = begin; element < end; ++element) {
          const int64_t offset = element / s.columns() * s.height_dilation;
          const Run run = RunOf(s, element % s.columns());
          float* const sums = dkernel + element * places.filters;
          std::fill_n(sums, places.filters, 0.0f);
          for (int64_t row = 0; row < s.examples * s.height.output; ++row) {
            const int64_t n = row / s.height.output;
            const int64_t i = s.height.Pixel(row % s.height.output, offset);
            if (i < 0 || i >= s.height.input) continue;
            AddKernelGradient(run, x + (n * s.height.input + i) * places.x_row,
                              dy + row * places.y_row, sums);
          }
        }
      });
  return absl::OkStatus();
}

absl::Status DepthwiseInputGradient(Device& device, const DepthwiseShape& shape,
                                    const float* dy, const float* kernel,
                                    float* dx) {
  const DepthwiseShape& s = shape;
  const Places places(s);
  const int64_t work = places.y_row * s.rows() * s.columns();
  ParallelFor(
      device, s.examples * s.height.input,
      kGrain / std::max<int64_t>(work, 1) + 1,
      [&](int64_t /*part*/, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t n = row / s.height.input;
          float* const out = dx + row * places.x_row;
          std::fill_n(out, places.x_row, 0.0f);
          for (int64_t k = 0; k < s.rows(); ++k) {
            const int64_t from =
                row % s.height.input + s.height.before - k * s.height_dilation;
            const int64_t i = from / s.height.stride;
            if (from < 0 || from % s.height.stride != 0) continue;
            if (i >= s.height.output) continue;
            const float* const in =
                dy + (n * s.height.output + i) * places.y_row;
            for (int64_t l = 0; l < s.columns(); ++l) {
              AddInputGradient(RunOf(s, l), in,
                               kernel + (k * s.columns() + l) * places.filters,
                               out);
            }
          }
        }
      });
  return absl::OkStatus();
}

}  // namespace parasol::cpu

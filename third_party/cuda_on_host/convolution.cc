#include "third_party/cuda_on_host/convolution.h"

#include <cuda_bf16.h>

#include <vector>

#include "third_party/cuda_on_host/round.h"

namespace cuda_on_host {
namespace {

int64_t Outputs(int64_t padded, int64_t window, int64_t stride) {
  return padded < window ? 0 : (padded - window) / stride + 1;
}

std::vector<double> Read(const ConvolutionArray& array, const void* data) {
  std::vector<double> values(array.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] =
        array.is_bfloat16
            ? __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i])
            : RoundToTf32(static_cast<const float*>(data)[i]);
  }
  return values;
}

void Write(const ConvolutionArray& array, const std::vector<double>& values,
           double factor, void* data) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(values[i] * factor);
    if (array.is_bfloat16) {
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(value);
    } else {
      static_cast<float*>(data)[i] = value;
    }
  }
}

// Calls each(first element of x, of w, of y) for each pixel and each place in
// the window that covers it.
template <typename Each>
void ForEachPair(const Convolution& s, const Each& each) {
  for (int64_t n = 0; n < s.y.n; ++n) {
    for (int64_t i = 0; i < s.y.h; ++i) {
      for (int64_t j = 0; j < s.y.w; ++j) {
        for (int64_t k = 0; k < s.w.h; ++k) {
          const int64_t row = i * s.stride_h + k - s.before_h;
          if (row < 0 || row >= s.x.h) continue;
          for (int64_t l = 0; l < s.w.w; ++l) {
            const int64_t column = j * s.stride_w + l - s.before_w;
            if (column < 0 || column >= s.x.w) continue;
            each(((n * s.x.h + row) * s.x.w + column) * s.x.c,
                 (k * s.w.w + l) * s.w.c,
                 ((n * s.y.h + i) * s.y.w + j) * s.y.c);
          }
        }
      }
    }
  }
}

}  // namespace

bool Convolution::Fits() const {
  return x.n == y.n && x.c == w.c && y.c == w.n &&
         y.h == Outputs(x.h + before_h + after_h, w.h, stride_h) &&
         y.w == Outputs(x.w + before_w + after_w, w.w, stride_w);
}

void Convolution::Compute(void* x_data, void* w_data, void* y_data) const {
  std::vector<double> xs, ws, ys;
  const bool is_forward = pass == ConvolutionPass::kForward;
  const bool is_filter = pass == ConvolutionPass::kFilterGradient;
  const bool is_input = pass == ConvolutionPass::kInputGradient;
  xs = is_input ? std::vector<double>(x.size()) : Read(x, x_data);
  ws = is_filter ? std::vector<double>(w.size()) : Read(w, w_data);
  ys = is_forward ? std::vector<double>(y.size()) : Read(y, y_data);
  const int64_t step = w.h * w.w * w.c;
  ForEachPair(*this, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
    for (int64_t f = 0; f < w.n; ++f) {
      for (int64_t c = 0; c < x.c; ++c) {
        double& of_x = xs[at_x + c];
        double& of_w = ws[f * step + at_w + c];
        double& of_y = ys[at_y + f];
        if (is_forward) of_y += of_x * of_w;
        if (is_filter) of_w += of_x * of_y;
        if (is_input) of_x += of_y * of_w;
      }
    }
  });
  if (is_forward) Write(y, ys, factor, y_data);
  if (is_filter) Write(w, ws, factor, w_data);
  if (is_input) Write(x, xs, factor, x_data);
}

}  // namespace cuda_on_host

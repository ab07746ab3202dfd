#include <cstdint>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_dnn.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/image/convolution.h"

namespace parasol::cuda {
namespace {

// columns[n,i,j, k,l,c] = x[n, i·s+k-p, j·t+l-q, c], 0 for padding.
struct Gather {
  ConvolutionShape s;
  const float* x;
  float* columns;
  __device__ void operator()(int64_t i) const {
    int64_t rest = i;
    const int64_t c = rest % s.channels;
    rest /= s.channels;
    const int64_t l = rest % s.width.window;
    rest /= s.width.window;
    const int64_t k = rest % s.height.window;
    rest /= s.height.window;
    const int64_t column =
        rest % s.width.output * s.width.stride + l - s.width.before;
    rest /= s.width.output;
    const int64_t row =
        rest % s.height.output * s.height.stride + k - s.height.before;
    const int64_t n = rest / s.height.output;
    const bool inside = row >= 0 && row < s.height.input && column >= 0 &&
                        column < s.width.input;
    columns[i] = inside
                     ? x[((n * s.height.input + row) * s.width.input + column) *
                             s.channels +
                         c]
                     : 0;
  }
};

// The window that has the pixel at its position `k`, or -1.
__device__ int64_t WindowOf(const WindowAxis& axis, int64_t pixel, int64_t k) {
  const int64_t start = pixel + axis.before - k;
  if (start < 0 || start % axis.stride != 0) return -1;
  const int64_t window = start / axis.stride;
  return window < axis.output ? window : -1;
}

// dx[pixel] = the sum of what columns were gathered from it: each dx is one
// thread's, so that the order of the sum is always the same.
struct SumColumns {
  ConvolutionShape s;
  const float* columns;
  float* dx;
  __device__ void operator()(int64_t i) const {
    int64_t rest = i;
    const int64_t c = rest % s.channels;
    rest /= s.channels;
    const int64_t column = rest % s.width.input;
    rest /= s.width.input;
    const int64_t row = rest % s.height.input;
    const int64_t n = rest / s.height.input;
    float sum = 0;
    for (int64_t k = 0; k < s.height.window; ++k) {
      const int64_t window_row = WindowOf(s.height, row, k);
      if (window_row < 0) continue;
      for (int64_t l = 0; l < s.width.window; ++l) {
        const int64_t window_column = WindowOf(s.width, column, l);
        if (window_column < 0) continue;
        const int64_t window =
            (n * s.height.output + window_row) * s.width.output + window_column;
        sum += columns[((window * s.height.window + k) * s.width.window + l) *
                           s.channels +
                       c];
      }
    }
    dx[i] = sum;
  }
};

// The windows copied out as the rows of a matrix, times the kernel as a matrix:
// slow for the memory it moves, but without cuDNN.
class CudaConvolution : public Convolution {
 public:
  CudaConvolution(CudaDevice& device, const ConvolutionShape& shape,
                  const Options& options, Array<float> columns)
      : device_(device),
        shape_(shape),
        options_(options),
        columns_(std::move(columns)) {}

  absl::Status Forward(const float* x, const float* kernel, const float* bias,
                       float* y) override {
    RETURN_IF_ERROR(GatherColumns(x));
    return cuda::Affine(device_, Columns(), Kernel(kernel),
                        options_.has_bias ? bias : nullptr, options_.epilogue,
                        {y, shape_.outputs(), shape_.filters});
  }

  absl::Status VariableGradients(const float* x, const float* dy,
                                 float* dkernel, float* dbias) override {
    RETURN_IF_ERROR(GatherColumns(x));
    return cuda::AffineVariableGradients(
        device_, Columns(), {dy, shape_.outputs(), shape_.filters},
        {dkernel, shape_.window_size(), shape_.filters},
        options_.has_bias ? dbias : nullptr);
  }

  absl::Status InputGradient(const float* dy, const float* kernel,
                             float* dx) override {
    RETURN_IF_ERROR(cuda::AffineInputGradient(
        device_, {dy, shape_.outputs(), shape_.filters}, Kernel(kernel),
        Columns()));
    return ForEach(device_, "gradient of a convolution's input",
                   shape_.x_size(), SumColumns{shape_, columns_.data(), dx});
  }

 private:
  MutableMatrixView Columns() const {
    return {columns_.data(), shape_.outputs(), shape_.window_size()};
  }
  MatrixView Kernel(const float* kernel) const {
    return {kernel, shape_.window_size(), shape_.filters};
  }

  absl::Status GatherColumns(const float* x) {
    return ForEach(device_, "windows of a convolution", Columns().size(),
                   Gather{shape_, x, columns_.data()});
  }

  CudaDevice& device_;
  const ConvolutionShape shape_;
  const Options options_;
  const Array<float> columns_;
};

class DnnConvolutionOnDevice : public Convolution {
 public:
  DnnConvolutionOnDevice(CudaDevice& device, const ConvolutionShape& shape,
                         const Options& options,
                         std::unique_ptr<DnnConvolution> convolution)
      : device_(device),
        shape_(shape),
        options_(options),
        convolution_(std::move(convolution)) {}

  absl::Status Forward(const float* x, const float* kernel, const float* bias,
                       float* y) override {
    RETURN_IF_ERROR(device_.ComputeStream().status());
    RETURN_IF_ERROR(convolution_->Forward(x, kernel, y));
    return cuda::ApplyEpilogue(device_, options_.has_bias ? bias : nullptr,
                               options_.epilogue,
                               {y, shape_.outputs(), shape_.filters});
  }

  absl::Status VariableGradients(const float* x, const float* dy,
                                 float* dkernel, float* dbias) override {
    RETURN_IF_ERROR(device_.ComputeStream().status());
    RETURN_IF_ERROR(convolution_->KernelGradient(x, dy, dkernel));
    if (!options_.has_bias) return absl::OkStatus();
    return cuda::SumRows(device_, {dy, shape_.outputs(), shape_.filters},
                         dbias);
  }

  absl::Status InputGradient(const float* dy, const float* kernel,
                             float* dx) override {
    RETURN_IF_ERROR(device_.ComputeStream().status());
    return convolution_->InputGradient(dy, kernel, dx);
  }

 private:
  CudaDevice& device_;
  const ConvolutionShape shape_;
  const Options options_;
  const std::unique_ptr<DnnConvolution> convolution_;
};

DnnConvolutionShape::Axis ForDnn(const WindowAxis& axis) {
  return {.input = axis.input,
          .window = axis.window,
          .stride = axis.stride,
          .padding = axis.before,
          .output = axis.output};
}

// cuDNN pads both sides alike, so padding behind the last pixel may only be
// less where no window reaches it.
bool PadsAlike(const WindowAxis& axis) {
  return axis.after() <= axis.before &&
         (axis.input + 2 * axis.before - axis.window) / axis.stride + 1 ==
             axis.output;
}

// Unimplemented, FailedPrecondition: to be done without cuDNN.
absl::StatusOr<std::unique_ptr<DnnConvolution>> NewDnnConvolution(
    CudaDevice& device, const ConvolutionShape& shape) {
  if (!PadsAlike(shape.height) || !PadsAlike(shape.width)) {
    return absl::UnimplementedError("padded more at the end");
  }
  ASSIGN_OR_RETURN(CudaDnn* const dnn, device.dnn());
  return dnn->NewConvolution({.examples = shape.examples,
                              .height = ForDnn(shape.height),
                              .width = ForDnn(shape.width),
                              .channels = shape.channels,
                              .filters = shape.filters});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Convolution>> NewConvolution(
    Device& device, const ConvolutionShape& shape,
    const Convolution::Options& options) {
  auto& cuda_device = static_cast<CudaDevice&>(device);
  RETURN_IF_ERROR(cuda_device.ComputeStream().status());
  absl::StatusOr<std::unique_ptr<DnnConvolution>> dnn =
      NewDnnConvolution(cuda_device, shape);
  if (dnn.ok()) {
    return std::make_unique<DnnConvolutionOnDevice>(cuda_device, shape, options,
                                                    *std::move(dnn));
  }
  if (!absl::IsUnimplemented(dnn.status()) &&
      !absl::IsFailedPrecondition(dnn.status())) {
    return dnn.status();
  }
  ASSIGN_OR_RETURN(
      Array<float> columns,
      device.NewArray<float>(shape.outputs() * shape.window_size()));
  return std::make_unique<CudaConvolution>(cuda_device, shape, options,
                                           std::move(columns));
}

}  // namespace parasol::cuda

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "ml/kernel/batch_normalization.h"
#include "ml/kernel/cuda_device.h"
#include "ml/kernel/cuda_status.h"

namespace parasol::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;
// Sums: a warp reads neighbouring channels of one row, so that its loads are
// one transaction; the warps of a block share the rows.
constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 16;

int64_t Blocks(int64_t size) {
  return std::min((size + kThreads - 1) / kThreads, kMaxBlocks);
}

// Of each channel, [channels] each: the batch's moments, what the affine step
// y = (x - mean) · scale + shift takes, and the constants of the input's
// gradient.
struct Channels {
  float* mean;
  float* variance;
  float* inverse;  // 1 / sqrt(variance + epsilon)
  float* scale;
  float* shift;
  float* constant;
  float* slope;
};
constexpr int kArrays = 7;

// The sum over a block's warps of what each has for its channel, in the first
// warp. Always in the same order.
__device__ float SumOfWarps(float value,
                            float (&partial)[kWarpsPerBlock][kWarp]) {
  partial[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  float sum = partial[0][threadIdx.x];
  for (int i = 1; i < kWarpsPerBlock; ++i) sum += partial[i][threadIdx.x];
  __syncthreads();
  return sum;
}

// Two passes over x: exact however large the mean is.
__global__ void MomentsKernel(const float* x, int64_t rows, int64_t channels,
                              Channels of) {
  __shared__ float partial[kWarpsPerBlock][kWarp];
  const int64_t c = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  const bool inside = c < channels;
  float sum = 0;
  for (int64_t row = threadIdx.y; inside && row < rows; row += kWarpsPerBlock) {
    sum += x[row * channels + c];
  }
  const float mean = SumOfWarps(sum, partial) / rows;
  float squares = 0;
  for (int64_t row = threadIdx.y; inside && row < rows; row += kWarpsPerBlock) {
    const float difference = x[row * channels + c] - mean;
    squares += difference * difference;
  }
  const float variance = SumOfWarps(squares, partial) / rows;
  if (!inside || threadIdx.y != 0) return;
  of.mean[c] = mean;
  of.variance[c] = variance;
}

__global__ void ScaleKernel(const float* mean, const float* variance,
                            const float* gamma, const float* beta,
                            float epsilon, int64_t channels, Channels of) {
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  of.mean[c] = mean[c];
  // A moving variance may be below 0. NaN stays NaN.
  of.variance[c] = variance[c] < 0 ? 0 : variance[c];
  of.inverse[c] = 1 / sqrtf(of.variance[c] + epsilon);
  of.scale[c] = of.inverse[c] * (gamma == nullptr ? 1 : gamma[c]);
  of.shift[c] = beta == nullptr ? 0 : beta[c];
}

// Never fused, so that the forward and the backward pass agree on what relu
// lets through.
__device__ float Affine(const Channels& of, float difference, int64_t c) {
  return __fadd_rn(__fmul_rn(difference, of.scale[c]), of.shift[c]);
}

template <bool kRelu>
__global__ void NormalizeKernel(const float* x, int64_t size, int64_t channels,
                                Channels of, float* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += step) {
    const int64_t c = i % channels;
    float value = Affine(of, x[i] - of.mean[c], c);
    if (kRelu) value = value < 0 ? 0 : value;
    y[i] = value;
  }
}

template <bool kRelu>
__device__ float GradientBeforeRelu(const Channels& of, float difference,
                                    float dy, int64_t c) {
  return !kRelu || Affine(of, difference, c) > 0 ? dy : 0;
}

// With n rows and i = 1 / sqrt(variance + epsilon):
//   dx = scale · (dy - Σ dy / n - (x - mean) · i² · Σ dy (x - mean) / n)
template <bool kRelu>
__global__ void VariableGradientsKernel(const float* x, const float* dy,
                                        int64_t rows, int64_t channels,
                                        Channels of, float* dgamma,
                                        float* dbeta) {
  __shared__ float partial[kWarpsPerBlock][kWarp];
  const int64_t c = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  const bool inside = c < channels;
  float sum = 0;
  float product = 0;
  for (int64_t row = threadIdx.y; inside && row < rows; row += kWarpsPerBlock) {
    const float difference = x[row * channels + c] - of.mean[c];
    const float gradient =
        GradientBeforeRelu<kRelu>(of, difference, dy[row * channels + c], c);
    sum += gradient;
    product += gradient * difference;
  }
  sum = SumOfWarps(sum, partial);
  product = SumOfWarps(product, partial);
  if (!inside || threadIdx.y != 0) return;
  const float inverse = of.inverse[c];
  if (dbeta != nullptr) dbeta[c] = sum;
  if (dgamma != nullptr) dgamma[c] = product * inverse;
  of.constant[c] = of.scale[c] * sum / rows;
  of.slope[c] = of.scale[c] * inverse * inverse * product / rows;
}

template <bool kRelu>
__global__ void InputGradientKernel(const float* x, const float* dy,
                                    int64_t size, int64_t channels, Channels of,
                                    float* dx) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += step) {
    const int64_t c = i % channels;
    const float difference = x[i] - of.mean[c];
    const float gradient = GradientBeforeRelu<kRelu>(of, difference, dy[i], c);
    dx[i] = of.scale[c] * gradient - of.constant[c] - difference * of.slope[c];
  }
}

__global__ void MomentsChangeKernel(BatchNormalization::Moments moving,
                                    float rate, float unbiased,
                                    int64_t channels, Channels of,
                                    BatchNormalization::MutableMoments change) {
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  change.mean[c] = rate * (moving.mean[c] - of.mean[c]);
  change.variance[c] = rate * (moving.variance[c] - of.variance[c] * unbiased);
}

class CudaBatchNormalization : public BatchNormalization {
 public:
  CudaBatchNormalization(CudaDevice& device, const Shape& shape,
                         const Options& options, Array<float> memory)
      : device_(device),
        shape_(shape),
        options_(options),
        memory_(std::move(memory)) {
    float* next = memory_.data();
    for (float** array :
         {&channels_.mean, &channels_.variance, &channels_.inverse,
          &channels_.scale, &channels_.shift, &channels_.constant,
          &channels_.slope}) {
      *array = next;
      next += shape.channels;
    }
  }

  absl::Status ForwardTraining(const float* x, const float* gamma,
                               const float* beta, float* y) override {
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    MomentsKernel<<<SumBlocks(), SumThreads(), 0, stream>>>(
        x, shape_.rows, shape_.channels, channels_);
    RETURN_IF_ERROR(LaunchStatus("moments of a batch"));
    return Apply(x, gamma, beta, {channels_.mean, channels_.variance}, y);
  }

  absl::Status ForwardEvaluation(const float* x, const float* gamma,
                                 const float* beta, const Moments& moving,
                                 float* y) override {
    return Apply(x, gamma, beta, moving, y);
  }

  absl::Status MomentsChange(const Moments& moving, double momentum,
                             const MutableMoments& change) override {
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    const double unbiased =
        shape_.rows > 1 ? shape_.rows / (shape_.rows - 1.0) : 1.0;
    MomentsChangeKernel<<<ChannelBlocks(), kThreads, 0, stream>>>(
        moving, static_cast<float>(1 - momentum), static_cast<float>(unbiased),
        shape_.channels, channels_, change);
    return LaunchStatus("moving moments");
  }

  absl::Status VariableGradients(const float* x, const float* dy, float* dgamma,
                                 float* dbeta) override {
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    const auto kernel = options_.epilogue == Epilogue::kRelu
                            ? VariableGradientsKernel<true>
                            : VariableGradientsKernel<false>;
    kernel<<<SumBlocks(), SumThreads(), 0, stream>>>(
        x, dy, shape_.rows, shape_.channels, channels_, dgamma, dbeta);
    return LaunchStatus("gradients of a batch normalization");
  }

  absl::Status InputGradient(const float* x, const float* dy,
                             float* dx) override {
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    const auto kernel = options_.epilogue == Epilogue::kRelu
                            ? InputGradientKernel<true>
                            : InputGradientKernel<false>;
    kernel<<<Blocks(shape_.size()), kThreads, 0, stream>>>(
        x, dy, shape_.size(), shape_.channels, channels_, dx);
    return LaunchStatus("gradient of a batch normalization's input");
  }

 private:
  int64_t ChannelBlocks() const {
    return (shape_.channels + kThreads - 1) / kThreads;
  }
  int64_t SumBlocks() const { return (shape_.channels + kWarp - 1) / kWarp; }
  static dim3 SumThreads() { return dim3(kWarp, kWarpsPerBlock); }

  absl::Status Apply(const float* x, const float* gamma, const float* beta,
                     const Moments& moments, float* y) {
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    ScaleKernel<<<ChannelBlocks(), kThreads, 0, stream>>>(
        moments.mean, moments.variance, gamma, beta,
        static_cast<float>(options_.epsilon), shape_.channels, channels_);
    RETURN_IF_ERROR(LaunchStatus("scale of a batch normalization"));
    const auto kernel = options_.epilogue == Epilogue::kRelu
                            ? NormalizeKernel<true>
                            : NormalizeKernel<false>;
    kernel<<<Blocks(shape_.size()), kThreads, 0, stream>>>(
        x, shape_.size(), shape_.channels, channels_, y);
    return LaunchStatus("batch normalization");
  }

  CudaDevice& device_;
  const Shape shape_;
  const Options options_;
  const Array<float> memory_;
  Channels channels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchNormalization>> NewBatchNormalization(
    Device& device, const BatchNormalization::Shape& shape,
    const BatchNormalization::Options& options) {
  ASSIGN_OR_RETURN(Array<float> memory,
                   device.NewArray<float>(kArrays * shape.channels));
  return std::make_unique<CudaBatchNormalization>(
      static_cast<CudaDevice&>(device), shape, options, std::move(memory));
}

}  // namespace parasol::cuda

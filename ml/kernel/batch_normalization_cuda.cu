#include <cstdint>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/batch_normalization.h"

namespace parasol::cuda {
namespace {

// Sums: a warp reads neighbouring channels of one row, so that its loads are
// one transaction; the warps of a block share the rows.
constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 16;

// Arrays [channels]: the batch's moments, the factors of the affine step y = (x
// - mean) · scale + shift, and the constants of the input's gradient.
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

struct SetScale {
  BatchNormalization::Moments moments;
  const float* gamma;
  const float* beta;
  float epsilon;
  Channels of;
  __device__ void operator()(int64_t c) const {
    of.mean[c] = moments.mean[c];
    // A moving variance may be below 0. NaN stays NaN.
    of.variance[c] = moments.variance[c] < 0 ? 0 : moments.variance[c];
    of.inverse[c] = 1 / sqrtf(of.variance[c] + epsilon);
    of.scale[c] = of.inverse[c] * (gamma == nullptr ? 1 : gamma[c]);
    of.shift[c] = beta == nullptr ? 0 : beta[c];
  }
};

// Never fused, so that the forward and the backward pass agree on what relu
// lets through.
__device__ float Affine(const Channels& of, float difference, int64_t c) {
  return __fadd_rn(__fmul_rn(difference, of.scale[c]), of.shift[c]);
}

template <bool kRelu>
struct Normalized {
  const float* x;
  int64_t channels;
  Channels of;
  float* y;
  __device__ void operator()(int64_t i) const {
    const int64_t c = i % channels;
    float value = Affine(of, x[i] - of.mean[c], c);
    if (kRelu) value = value < 0 ? 0 : value;
    y[i] = value;
  }
};

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
struct InputGradientOf {
  const float* x;
  const float* dy;
  int64_t channels;
  Channels of;
  float* dx;
  __device__ void operator()(int64_t i) const {
    const int64_t c = i % channels;
    const float difference = x[i] - of.mean[c];
    const float gradient = GradientBeforeRelu<kRelu>(of, difference, dy[i], c);
    dx[i] = of.scale[c] * gradient - of.constant[c] - difference * of.slope[c];
  }
};

struct ChangeOf {
  BatchNormalization::Moments moving;
  float rate;
  float unbiased;
  Channels of;
  BatchNormalization::MutableMoments change;
  __device__ void operator()(int64_t c) const {
    change.mean[c] = rate * (moving.mean[c] - of.mean[c]);
    change.variance[c] =
        rate * (moving.variance[c] - of.variance[c] * unbiased);
  }
};

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
    Launch(MomentsKernel, SumBlocks(), SumThreads(), stream, x, shape_.rows,
           shape_.channels, channels_);
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
    const double unbiased =
        shape_.rows > 1 ? shape_.rows / (shape_.rows - 1.0) : 1.0;
    return ForEach(device_, "moving moments", shape_.channels,
                   ChangeOf{moving, static_cast<float>(1 - momentum),
                            static_cast<float>(unbiased), channels_, change});
  }

  absl::Status VariableGradients(const float* x, const float* dy, float* dgamma,
                                 float* dbeta) override {
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    const auto kernel = options_.epilogue == Epilogue::kRelu
                            ? VariableGradientsKernel<true>
                            : VariableGradientsKernel<false>;
    Launch(kernel, SumBlocks(), SumThreads(), stream, x, dy, shape_.rows,
           shape_.channels, channels_, dgamma, dbeta);
    return LaunchStatus("gradients of a batch normalization");
  }

  absl::Status InputGradient(const float* x, const float* dy,
                             float* dx) override {
    return options_.epilogue == Epilogue::kRelu
               ? InputGradient<true>(x, dy, dx)
               : InputGradient<false>(x, dy, dx);
  }

 private:
  int64_t SumBlocks() const { return (shape_.channels + kWarp - 1) / kWarp; }
  static dim3 SumThreads() { return dim3(kWarp, kWarpsPerBlock); }

  absl::Status Apply(const float* x, const float* gamma, const float* beta,
                     const Moments& moments, float* y) {
    RETURN_IF_ERROR(
        ForEach(device_, "scale of a batch normalization", shape_.channels,
                SetScale{moments, gamma, beta,
                         static_cast<float>(options_.epsilon), channels_}));
    return options_.epilogue == Epilogue::kRelu ? Normalize<true>(x, y)
                                                : Normalize<false>(x, y);
  }

  template <bool kRelu>
  absl::Status Normalize(const float* x, float* y) {
    return ForEach(device_, "batch normalization", shape_.size(),
                   Normalized<kRelu>{x, shape_.channels, channels_, y});
  }

  template <bool kRelu>
  absl::Status InputGradient(const float* x, const float* dy, float* dx) {
    return ForEach(
        device_, "gradient of a batch normalization's input", shape_.size(),
        InputGradientOf<kRelu>{x, dy, shape_.channels, channels_, dx});
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

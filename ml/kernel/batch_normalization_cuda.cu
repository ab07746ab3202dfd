#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "ml/device/cuda_column_sums.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/batch_normalization.h"

// Two kernels each way: one adds up slices of the rows, and the next one's
// blocks each add up the slices' sums of their channels, and go over x.
namespace parasol::cuda {
namespace {

using Tiles = ColumnTiles;

// Arrays [channels] of the last forward pass. A slice's sums are of x - pivot,
// so that they keep float's precision however large the mean is.
struct Channels {
  float* pivot;
  float* mean;
  float* variance;
  float* inverse;  // 1 / sqrt(variance + epsilon)
  float* scale;
  float* shift;
};
constexpr int kArrays = 6;

struct Variables {
  const float* gamma;
  const float* beta;
  float epsilon;
};

// Factors of a channel's affine step y = (x - mean) · scale + shift.
struct Factors {
  float mean;
  float scale;
  float shift;
};

// Fewest rows of a thread, most slices, and about the number of blocks of
// kernels that go over x. They need no sum of their own slice, so that more of
// them are worth it; but each adds up the sums of all slices first, so that
// more blocks than a large device runs in two turns are not.
constexpr int kRowsOfAThread = 8;
constexpr int kMaxSlices = 4 * Tiles::kMaxSlices;
constexpr int kBlocks = 2 * Tiles::kManyBlocks;

// The mean of some rows that are spread over the batch. All threads of a block
// call it, and blocks of the same channels get the same bits.
__device__ float PivotOf(const Tiles& tiles, const float* x) {
  const int64_t c = tiles.Column();
  const int64_t count = min(tiles.rows, int64_t{blockDim.y});
  double sum[1] = {0};
  if (c < tiles.columns && threadIdx.y < count) {
    sum[0] = x[tiles.rows * threadIdx.y / count * tiles.columns + c];
  }
  SumOverThreads(sum);
  return static_cast<float>(sum[0] / count);
}

// The sums of x - pivot and of its square.
__global__ void SumMomentsKernel(Tiles tiles, const float* __restrict__ x,
                                 float* pivots, SliceSums<2> result) {
  const int64_t c = tiles.Column();
  const bool is_inside = c < tiles.columns;
  const float pivot = PivotOf(tiles, x);
  float offset = 0;
  float square = 0;
  if (is_inside) {
    tiles.ForEachRow([&](int64_t row) {
      const float difference = x[row * tiles.columns + c] - pivot;
      offset += difference;
      square += difference * difference;
    });
  }
  double sums[2] = {offset, square};
  SumOverThreads(sums);
  if (!is_inside || threadIdx.y != 0) return;
  result(c, sums);
  if (blockIdx.y == 0) pivots[c] = pivot;
}

// Never fused, so that the forward and the backward pass agree on what relu
// lets through.
__device__ float Affine(const Factors& f, float difference) {
  return __fadd_rn(__fmul_rn(difference, f.scale), f.shift);
}

// Returns the factors for a channel's moments. The channel's first thread keeps
// them for the backward pass.
__device__ Factors Factorize(const Channels& of, const Variables& variables,
                             int64_t c, float mean, float variance) {
  const float inverse = 1 / sqrtf(variance + variables.epsilon);
  const Factors f = {
      .mean = mean,
      .scale = inverse * (variables.gamma == nullptr ? 1 : variables.gamma[c]),
      .shift = variables.beta == nullptr ? 0 : variables.beta[c]};
  if (blockIdx.y != 0 || threadIdx.y != 0) return f;
  of.mean[c] = mean;
  of.variance[c] = variance;
  of.inverse[c] = inverse;
  of.scale[c] = f.scale;
  of.shift[c] = f.shift;
  return f;
}

template <bool kRelu>
__device__ void Normalize(const Tiles& tiles, const float* __restrict__ x,
                          const Factors& f, float* __restrict__ y) {
  tiles.ForEachRow([&](int64_t row) {
    const int64_t i = row * tiles.columns + tiles.Column();
    const float value = Affine(f, x[i] - f.mean);
    y[i] = kRelu && value < 0 ? 0 : value;
  });
}

template <bool kRelu>
__global__ void NormalizeBatchKernel(Tiles tiles, const float* __restrict__ x,
                                     SliceSums<2> sums, Variables variables,
                                     Channels of, float* __restrict__ y) {
  double total[2];
  sums.Total(tiles, total);
  const int64_t c = tiles.Column();
  if (c >= tiles.columns) return;
  const double offset = total[0] / tiles.rows;
  const double variance = total[1] / tiles.rows - offset * offset;
  // Rounding may leave it below 0. NaN stays NaN.
  Normalize<kRelu>(
      tiles, x,
      Factorize(of, variables, c, static_cast<float>(of.pivot[c] + offset),
                variance < 0 ? 0 : static_cast<float>(variance)),
      y);
}

template <bool kRelu>
__global__ void NormalizeKernel(Tiles tiles, const float* x,
                                BatchNormalization::Moments moments,
                                Variables variables, Channels of, float* y) {
  const int64_t c = tiles.Column();
  if (c >= tiles.columns) return;
  // A moving variance may be below 0. NaN stays NaN.
  const float variance = moments.variance[c] < 0 ? 0 : moments.variance[c];
  Normalize<kRelu>(tiles, x,
                   Factorize(of, variables, c, moments.mean[c], variance), y);
}

template <bool kRelu>
__device__ float GradientBeforeRelu(const Factors& f, float difference,
                                    float dy) {
  return !kRelu || Affine(f, difference) > 0 ? dy : 0;
}

__device__ Factors FactorsOf(const Channels& of, int64_t c) {
  return {.mean = of.mean[c], .scale = of.scale[c], .shift = of.shift[c]};
}

// A row's part in Σ dy and Σ dy · (x - mean).
template <bool kRelu>
struct GradientTerm {
  const float* x;
  const float* dy;
  int64_t channels;
  Channels of;
  __device__ void operator()(int64_t row, int64_t c, float (&sums)[2]) const {
    const int64_t i = row * channels + c;
    const Factors f = FactorsOf(of, c);
    const float difference = x[i] - f.mean;
    const float gradient = GradientBeforeRelu<kRelu>(f, difference, dy[i]);
    sums[0] += gradient;
    sums[1] += gradient * difference;
  }
};

// What the backward pass writes of each channel.
struct ChannelGradients {
  float* dgamma;
  float* dbeta;
  BatchNormalization::MomentsUpdate update;
  float rate;
  float unbiased;
  __device__ void Write(const Channels& of, int64_t c,
                        const double (&sums)[2]) const {
    if (dbeta != nullptr) dbeta[c] = static_cast<float>(sums[0]);
    if (dgamma != nullptr) {
      dgamma[c] = static_cast<float>(sums[1] * of.inverse[c]);
    }
    if (update.change.mean == nullptr) return;
    update.change.mean[c] = rate * (update.moving.mean[c] - of.mean[c]);
    update.change.variance[c] =
        rate * (update.moving.variance[c] - of.variance[c] * unbiased);
  }
};

// With n rows and i = 1 / sqrt(variance + epsilon):
//   dx = scale · (dy - Σ dy / n - (x - mean) · i² · Σ dy (x - mean) / n)
template <bool kRelu>
__global__ void GradientsKernel(Tiles tiles, const float* __restrict__ x,
                                const float* __restrict__ dy, SliceSums<2> sums,
                                Channels of, ChannelGradients gradients,
                                float* __restrict__ dx) {
  double total[2];
  sums.Total(tiles, total);
  const int64_t c = tiles.Column();
  if (c >= tiles.columns) return;
  if (blockIdx.y == 0 && threadIdx.y == 0) gradients.Write(of, c, total);
  if (dx == nullptr) return;
  const Factors f = FactorsOf(of, c);
  const double inverse = of.inverse[c];
  const float constant = static_cast<float>(f.scale * total[0] / tiles.rows);
  const float slope =
      static_cast<float>(f.scale * inverse * inverse * total[1] / tiles.rows);
  tiles.ForEachRow([&](int64_t row) {
    const int64_t i = row * tiles.columns + c;
    const float difference = x[i] - f.mean;
    const float gradient = GradientBeforeRelu<kRelu>(f, difference, dy[i]);
    dx[i] = f.scale * gradient - constant - difference * slope;
  });
}

class CudaBatchNormalization : public BatchNormalization {
 public:
  CudaBatchNormalization(CudaDevice& device, const Shape& shape,
                         const Options& options, Array<float> memory)
      : device_(device),
        shape_(shape),
        options_(options),
        tiles_(shape.rows, shape.channels),
        memory_(std::move(memory)) {
    float* next = memory_.data();
    for (float** array :
         {&channels_.pivot, &channels_.mean, &channels_.variance,
          &channels_.inverse, &channels_.scale, &channels_.shift}) {
      *array = next;
      next += shape.channels;
    }
  }

  absl::Status ForwardTraining(const float* x, const float* gamma,
                               const float* beta, float* y) override {
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    ASSIGN_OR_RETURN(const SliceSums<2> sums, NewSliceSums<2>(device_, tiles_));
    Launch(SumMomentsKernel, tiles_.Blocks(tiles_.slices), tiles_.Threads(),
           stream, tiles_, x, channels_.pivot, sums);
    RETURN_IF_ERROR(LaunchStatus("moments of a batch"));
    Launch(IsRelu() ? NormalizeBatchKernel<true> : NormalizeBatchKernel<false>,
           Blocks(), tiles_.Threads(), stream, tiles_, x, sums,
           VariablesOf(gamma, beta), channels_, y);
    return LaunchStatus("batch normalization");
  }

  absl::Status ForwardEvaluation(const float* x, const float* gamma,
                                 const float* beta, const Moments& moving,
                                 float* y) override {
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    Launch(IsRelu() ? NormalizeKernel<true> : NormalizeKernel<false>, Blocks(),
           tiles_.Threads(), stream, tiles_, x, moving,
           VariablesOf(gamma, beta), channels_, y);
    return LaunchStatus("batch normalization by moving moments");
  }

  absl::Status Backward(const float* x, const float* dy,
                        const Gradients& gradients,
                        const MomentsUpdate& update) override {
    return IsRelu() ? Backward<true>(x, dy, gradients, update)
                    : Backward<false>(x, dy, gradients, update);
  }

 private:
  bool IsRelu() const { return options_.epilogue == Epilogue::kRelu; }
  dim3 Blocks() const {
    return tiles_.Blocks(tiles_.SlicesOf(
        kRowsOfAThread, std::min(kMaxSlices, tiles_.SlicesFor(kBlocks))));
  }
  Variables VariablesOf(const float* gamma, const float* beta) const {
    return {gamma, beta, static_cast<float>(options_.epsilon)};
  }

  template <bool kRelu>
  absl::Status Backward(const float* x, const float* dy,
                        const Gradients& gradients,
                        const MomentsUpdate& update) {
    using Term = GradientTerm<kRelu>;
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    ASSIGN_OR_RETURN(const SliceSums<2> sums, NewSliceSums<2>(device_, tiles_));
    Launch(SumSliceKernel<2, Term, SliceSums<2>>, tiles_.Blocks(tiles_.slices),
           tiles_.Threads(), stream, tiles_,
           Term{x, dy, shape_.channels, channels_}, sums);
    RETURN_IF_ERROR(LaunchStatus("gradients' sums of a batch normalization"));
    const ChannelGradients of_channels = {
        .dgamma = gradients.dgamma,
        .dbeta = gradients.dbeta,
        .update = update,
        .rate = static_cast<float>(1 - update.momentum),
        .unbiased = static_cast<float>(shape_.unbiased())};
    Launch(GradientsKernel<kRelu>,
           gradients.dx == nullptr ? tiles_.Blocks(1) : Blocks(),
           tiles_.Threads(), stream, tiles_, x, dy, sums, channels_,
           of_channels, gradients.dx);
    return LaunchStatus("gradients of a batch normalization");
  }

  CudaDevice& device_;
  const Shape shape_;
  const Options options_;
  const Tiles tiles_;
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

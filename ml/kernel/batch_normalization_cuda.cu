#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "ml/device/cuda_column_sums.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/device/cuda_pack.h"
#include "ml/kernel/batch_normalization.h"

// Two kernels each way: one adds up slices of the rows, and the next one's
// blocks each add up the slices' sums of their channels, and go over x. A
// thread has a pack of kWidth channels, which is a column of the division in
// tiles.
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

template <int kWidth>
struct PackFactors {
  Factors of[kWidth];
};

// Fewest rows of a thread, most slices, and about the number of blocks of
// kernels that go over x. They need no sum of their own slice, so that more of
// them are worth it; but each adds up the sums of all slices first, so that
// more blocks than a large device runs in two turns are not.
constexpr int kRowsOfAThread = 8;
constexpr int kMaxSlices = 4 * Tiles::kMaxSlices;
constexpr int kBlocks = 2 * Tiles::kManyBlocks;

// Returns where the calling thread's pack of a row begins in x.
template <int kWidth>
__device__ int64_t PlaceOf(const Tiles& tiles, int64_t row) {
  return (row * tiles.columns + tiles.Column()) * kWidth;
}

// The mean of some rows that are spread over the batch. All threads of the same
// channels get the same bits.
template <int kWidth>
__device__ Pack<kWidth> PivotOf(const Tiles& tiles, const float* x) {
  constexpr int64_t kRows = 8;
  const int64_t count = min(tiles.rows, kRows);
  double sums[kWidth] = {};
  for (int64_t i = 0; i < count; ++i) {
    const auto pack =
        Load<kWidth>(x + PlaceOf<kWidth>(tiles, tiles.rows * i / count));
    for (int j = 0; j < kWidth; ++j) sums[j] += pack.values[j];
  }
  Pack<kWidth> pivot;
  for (int j = 0; j < kWidth; ++j) {
    pivot.values[j] = static_cast<float>(sums[j] / count);
  }
  return pivot;
}

// The sums of x - pivot, and behind those of all channels of the pack, of its
// square.
template <int kWidth>
__global__ void SumMomentsKernel(Tiles tiles, const float* __restrict__ x,
                                 float* pivots, SliceSums<2 * kWidth> result) {
  const int64_t column = tiles.Column();
  const bool is_inside = column < tiles.columns;
  Pack<kWidth> pivot = {};
  float offsets[kWidth] = {};
  float squares[kWidth] = {};
  if (is_inside) {
    pivot = PivotOf<kWidth>(tiles, x);
    tiles.ForEachRow([&](int64_t row) {
      const auto pack = Load<kWidth>(x + PlaceOf<kWidth>(tiles, row));
      for (int j = 0; j < kWidth; ++j) {
        const float difference = pack.values[j] - pivot.values[j];
        offsets[j] += difference;
        squares[j] += difference * difference;
      }
    });
  }
  double sums[2 * kWidth];
  for (int j = 0; j < kWidth; ++j) {
    sums[j] = offsets[j];
    sums[kWidth + j] = squares[j];
  }
  SumOverThreads(sums);
  if (!is_inside || threadIdx.y != 0) return;
  result(column, sums);
  if (blockIdx.y != 0) return;
  for (int j = 0; j < kWidth; ++j) {
    pivots[column * kWidth + j] = pivot.values[j];
  }
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

template <bool kRelu, int kWidth>
__device__ void Normalize(const Tiles& tiles, const float* __restrict__ x,
                          const PackFactors<kWidth>& factors,
                          float* __restrict__ y) {
  tiles.ForEachRow([&](int64_t row) {
    const int64_t place = PlaceOf<kWidth>(tiles, row);
    auto pack = Load<kWidth>(x + place);
    for (int j = 0; j < kWidth; ++j) {
      const Factors& f = factors.of[j];
      const float value = Affine(f, pack.values[j] - f.mean);
      pack.values[j] = kRelu && value < 0 ? 0 : value;
    }
    Store(pack, y + place);
  });
}

template <bool kRelu, int kWidth>
__global__ void NormalizeBatchKernel(Tiles tiles, const float* __restrict__ x,
                                     SliceSums<2 * kWidth> sums,
                                     Variables variables, Channels of,
                                     float* __restrict__ y) {
  double totals[2 * kWidth];
  sums.Total(tiles, totals);
  const int64_t column = tiles.Column();
  if (column >= tiles.columns) return;
  PackFactors<kWidth> factors;
  for (int j = 0; j < kWidth; ++j) {
    const int64_t c = column * kWidth + j;
    const double offset = totals[j] / tiles.rows;
    const double variance = totals[kWidth + j] / tiles.rows - offset * offset;
    // Rounding may leave it below 0. NaN stays NaN.
    factors.of[j] =
        Factorize(of, variables, c, static_cast<float>(of.pivot[c] + offset),
                  variance < 0 ? 0 : static_cast<float>(variance));
  }
  Normalize<kRelu>(tiles, x, factors, y);
}

template <bool kRelu, int kWidth>
__global__ void NormalizeKernel(Tiles tiles, const float* x,
                                BatchNormalization::Moments moments,
                                Variables variables, Channels of, float* y) {
  const int64_t column = tiles.Column();
  if (column >= tiles.columns) return;
  PackFactors<kWidth> factors;
  for (int j = 0; j < kWidth; ++j) {
    const int64_t c = column * kWidth + j;
    // A moving variance may be below 0. NaN stays NaN.
    const float variance = moments.variance[c] < 0 ? 0 : moments.variance[c];
    factors.of[j] = Factorize(of, variables, c, moments.mean[c], variance);
  }
  Normalize<kRelu>(tiles, x, factors, y);
}

template <bool kRelu>
__device__ float GradientBeforeRelu(const Factors& f, float difference,
                                    float dy) {
  return !kRelu || Affine(f, difference) > 0 ? dy : 0;
}

__device__ Factors FactorsOf(const Channels& of, int64_t c) {
  return {.mean = of.mean[c], .scale = of.scale[c], .shift = of.shift[c]};
}

// The sums of dy, and behind those of all channels of the pack, of dy · (x -
// mean).
template <bool kRelu, int kWidth>
__global__ void SumGradientsKernel(Tiles tiles, const float* __restrict__ x,
                                   const float* __restrict__ dy, Channels of,
                                   SliceSums<2 * kWidth> result) {
  const int64_t column = tiles.Column();
  const bool is_inside = column < tiles.columns;
  float constants[kWidth] = {};
  float slopes[kWidth] = {};
  if (is_inside) {
    PackFactors<kWidth> factors;
    for (int j = 0; j < kWidth; ++j) {
      factors.of[j] = FactorsOf(of, column * kWidth + j);
    }
    tiles.ForEachRow([&](int64_t row) {
      const int64_t place = PlaceOf<kWidth>(tiles, row);
      const auto xs = Load<kWidth>(x + place);
      const auto dys = Load<kWidth>(dy + place);
      for (int j = 0; j < kWidth; ++j) {
        const Factors& f = factors.of[j];
        const float difference = xs.values[j] - f.mean;
        const float gradient =
            GradientBeforeRelu<kRelu>(f, difference, dys.values[j]);
        constants[j] += gradient;
        slopes[j] += gradient * difference;
      }
    });
  }
  double sums[2 * kWidth];
  for (int j = 0; j < kWidth; ++j) {
    sums[j] = constants[j];
    sums[kWidth + j] = slopes[j];
  }
  SumOverThreads(sums);
  if (is_inside && threadIdx.y == 0) result(column, sums);
}

// What the backward pass writes of each channel.
struct ChannelGradients {
  float* dgamma;
  float* dbeta;
  BatchNormalization::MomentsUpdate update;
  float rate;
  float unbiased;
  __device__ void Write(const Channels& of, int64_t c, double constant,
                        double slope) const {
    if (dbeta != nullptr) dbeta[c] = static_cast<float>(constant);
    if (dgamma != nullptr)
      dgamma[c] = static_cast<float>(slope * of.inverse[c]);
    if (update.change.mean == nullptr) return;
    update.change.mean[c] = rate * (update.moving.mean[c] - of.mean[c]);
    update.change.variance[c] =
        rate * (update.moving.variance[c] - of.variance[c] * unbiased);
  }
};

// With n rows and i = 1 / sqrt(variance + epsilon):
//   dx = scale · (dy - Σ dy / n - (x - mean) · i² · Σ dy (x - mean) / n)
template <bool kRelu, int kWidth>
__global__ void GradientsKernel(Tiles tiles, const float* __restrict__ x,
                                const float* __restrict__ dy,
                                SliceSums<2 * kWidth> sums, Channels of,
                                ChannelGradients gradients,
                                float* __restrict__ dx) {
  double totals[2 * kWidth];
  sums.Total(tiles, totals);
  const int64_t column = tiles.Column();
  if (column >= tiles.columns) return;
  PackFactors<kWidth> factors;
  float constants[kWidth];
  float slopes[kWidth];
  for (int j = 0; j < kWidth; ++j) {
    const int64_t c = column * kWidth + j;
    const double constant = totals[j];
    const double slope = totals[kWidth + j];
    if (blockIdx.y == 0 && threadIdx.y == 0) {
      gradients.Write(of, c, constant, slope);
    }
    const Factors f = FactorsOf(of, c);
    const double inverse = of.inverse[c];
    factors.of[j] = f;
    constants[j] = static_cast<float>(f.scale * constant / tiles.rows);
    slopes[j] =
        static_cast<float>(f.scale * inverse * inverse * slope / tiles.rows);
  }
  if (dx == nullptr) return;
  tiles.ForEachRow([&](int64_t row) {
    const int64_t place = PlaceOf<kWidth>(tiles, row);
    const auto xs = Load<kWidth>(x + place);
    auto dys = Load<kWidth>(dy + place);
    for (int j = 0; j < kWidth; ++j) {
      const Factors& f = factors.of[j];
      const float difference = xs.values[j] - f.mean;
      const float gradient =
          GradientBeforeRelu<kRelu>(f, difference, dys.values[j]);
      dys.values[j] =
          f.scale * gradient - constants[j] - difference * slopes[j];
    }
    Store(dys, dx + place);
  });
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
         {&channels_.pivot, &channels_.mean, &channels_.variance,
          &channels_.inverse, &channels_.scale, &channels_.shift}) {
      *array = next;
      next += shape.channels;
    }
  }

  absl::Status ForwardTraining(const float* x, const float* gamma,
                               const float* beta, float* y) override {
    return WithKernels(
        IsPacked(shape_.channels, x, y), [&]<bool kRelu, int kWidth>() {
          return ForwardTraining<kRelu, kWidth>(x, VariablesOf(gamma, beta), y);
        });
  }

  absl::Status ForwardEvaluation(const float* x, const float* gamma,
                                 const float* beta, const Moments& moving,
                                 float* y) override {
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    return WithKernels(
        IsPacked(shape_.channels, x, y), [&]<bool kRelu, int kWidth>() {
          const Tiles tiles = TilesOf<kWidth>();
          Launch(NormalizeKernel<kRelu, kWidth>, Blocks(tiles), tiles.Threads(),
                 stream, tiles, x, moving, VariablesOf(gamma, beta), channels_,
                 y);
          return LaunchStatus("batch normalization by moving moments");
        });
  }

  absl::Status Backward(const float* x, const float* dy,
                        const Gradients& gradients,
                        const MomentsUpdate& update) override {
    return WithKernels(IsPacked(shape_.channels, x, dy, gradients.dx),
                       [&]<bool kRelu, int kWidth>() {
                         return Backward<kRelu, kWidth>(x, dy, gradients,
                                                        update);
                       });
  }

 private:
  // Returns launch.operator()<kRelu, kWidth>().
  template <typename Launcher>
  absl::Status WithKernels(bool packed, const Launcher& launch) const {
    if (options_.epilogue == Epilogue::kRelu) {
      return packed ? launch.template operator()<true, kPackWidth>()
                    : launch.template operator()<true, 1>();
    }
    return packed ? launch.template operator()<false, kPackWidth>()
                  : launch.template operator()<false, 1>();
  }

  template <int kWidth>
  Tiles TilesOf() const {
    return Tiles(shape_.rows, shape_.channels / kWidth);
  }
  static dim3 Blocks(const Tiles& tiles) {
    return tiles.Blocks(tiles.SlicesOf(
        kRowsOfAThread, std::min(kMaxSlices, tiles.SlicesFor(kBlocks))));
  }
  Variables VariablesOf(const float* gamma, const float* beta) const {
    return {gamma, beta, static_cast<float>(options_.epsilon)};
  }

  template <bool kRelu, int kWidth>
  absl::Status ForwardTraining(const float* x, const Variables& variables,
                               float* y) {
    const Tiles tiles = TilesOf<kWidth>();
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    ASSIGN_OR_RETURN(const SliceSums<2 * kWidth> sums,
                     NewSliceSums<2 * kWidth>(device_, tiles));
    Launch(SumMomentsKernel<kWidth>, tiles.Blocks(tiles.slices),
           tiles.Threads(), stream, tiles, x, channels_.pivot, sums);
    RETURN_IF_ERROR(LaunchStatus("moments of a batch"));
    Launch(NormalizeBatchKernel<kRelu, kWidth>, Blocks(tiles), tiles.Threads(),
           stream, tiles, x, sums, variables, channels_, y);
    return LaunchStatus("batch normalization");
  }

  template <bool kRelu, int kWidth>
  absl::Status Backward(const float* x, const float* dy,
                        const Gradients& gradients,
                        const MomentsUpdate& update) {
    const Tiles tiles = TilesOf<kWidth>();
    ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
    ASSIGN_OR_RETURN(const SliceSums<2 * kWidth> sums,
                     NewSliceSums<2 * kWidth>(device_, tiles));
    Launch(SumGradientsKernel<kRelu, kWidth>, tiles.Blocks(tiles.slices),
           tiles.Threads(), stream, tiles, x, dy, channels_, sums);
    RETURN_IF_ERROR(LaunchStatus("gradients' sums of a batch normalization"));
    const ChannelGradients of_channels = {
        .dgamma = gradients.dgamma,
        .dbeta = gradients.dbeta,
        .update = update,
        .rate = static_cast<float>(1 - update.momentum),
        .unbiased = static_cast<float>(shape_.unbiased())};
    Launch(GradientsKernel<kRelu, kWidth>,
           gradients.dx == nullptr ? tiles.Blocks(1) : Blocks(tiles),
           tiles.Threads(), stream, tiles, x, dy, sums, channels_, of_channels,
           gradients.dx);
    return LaunchStatus("gradients of a batch normalization");
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

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "ml/device/cuda_column_sums.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/device/cuda_pack.h"
#include "ml/kernel/add.h"
#include "ml/kernel/normalization/batch_normalization.h"
#include "ml/kernel/relu.h"

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

// Most blocks of this size that a multiprocessor runs at once; Turing's have
// fewer threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kMostBlocks = 2;
#else
constexpr int kMostBlocks = 4;
#endif

// Blocks of the kernels that go over x that are to fit on a multiprocessor, as
// far as their registers go. Without a limit two channels of a thread would
// leave two.
template <int kWidth>
constexpr int kNormalizingBlocks = std::min(kWidth == 1 ? 4 : 3, kMostBlocks);
constexpr int kGradientBlocks = std::min(3, kMostBlocks);

// The division of x among threads. A thread has kWidth neighbouring channels,
// one of the tiles' columns.
template <int kWidth>
struct Division {
  Tiles tiles;

  Division(int64_t rows, int64_t channels) : tiles(rows, channels / kWidth) {}

  __device__ bool HasChannels() const { return tiles.Column() < tiles.columns; }
  // First of the calling thread's channels, and its place in a row.
  __device__ int64_t Channel() const { return tiles.Column() * kWidth; }
  __device__ int64_t Place(int64_t row) const {
    return (row * tiles.columns + tiles.Column()) * kWidth;
  }
};

// Sums of each of a thread's channels, one channel after the other.
template <int kWidth>
using Sums = SliceSums<2 * kWidth>;

// Computes the means of some rows that are spread over the batch. All threads
// of a block call it, and blocks of the same channels get the same bits.
template <int kWidth, typename T>
__device__ void FindPivots(const Division<kWidth>& division, const T* x,
                           float (&pivots)[kWidth]) {
  const int64_t rows = division.tiles.rows;
  const int64_t count = min(rows, int64_t{blockDim.y});
  double sums[kWidth] = {};
  if (division.HasChannels() && threadIdx.y < count) {
    const Pack<kWidth> values =
        Load<kWidth>(x + division.Place(rows * threadIdx.y / count));
    for (int j = 0; j < kWidth; ++j) sums[j] = values.values[j];
  }
  SumOverThreads(sums);
  for (int j = 0; j < kWidth; ++j) {
    pivots[j] = static_cast<float>(sums[j] / count);
  }
}

// The sums of x - pivot and of its square.
template <int kWidth, typename T>
__global__ void SumMomentsKernel(Division<kWidth> division,
                                 const T* __restrict__ x, float* pivots,
                                 Sums<kWidth> result) {
  float pivot[kWidth];
  FindPivots(division, x, pivot);
  float offsets[kWidth] = {};
  float squares[kWidth] = {};
  if (division.HasChannels()) {
    division.tiles.ForEachRow([&](int64_t row) {
      const Pack<kWidth> values = Load<kWidth>(x + division.Place(row));
      for (int j = 0; j < kWidth; ++j) {
        const float difference = values.values[j] - pivot[j];
        offsets[j] += difference;
        squares[j] += difference * difference;
      }
    });
  }
  double sums[2 * kWidth];
  for (int j = 0; j < kWidth; ++j) {
    sums[2 * j] = offsets[j];
    sums[2 * j + 1] = squares[j];
  }
  SumOverThreads(sums);
  if (!division.HasChannels() || threadIdx.y != 0) return;
  result(division.tiles.Column(), sums);
  if (blockIdx.y != 0) return;
  for (int j = 0; j < kWidth; ++j) pivots[division.Channel() + j] = pivot[j];
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

template <bool kRelu, int kWidth, typename T>
__device__ void Normalize(const Division<kWidth>& division,
                          const T* __restrict__ x, const Factors (&f)[kWidth],
                          T* __restrict__ y) {
  division.tiles.ForEachRow([&](int64_t row) {
    Pack<kWidth> values = Load<kWidth>(x + division.Place(row));
    for (int j = 0; j < kWidth; ++j) {
      const float value = Affine(f[j], values.values[j] - f[j].mean);
      values.values[j] = kRelu && value < 0 ? 0 : value;
    }
    Store(values, y + division.Place(row));
  });
}

template <bool kRelu, int kWidth, typename T>
__global__ void __launch_bounds__(Tiles::kThreads, kNormalizingBlocks<kWidth>)
    NormalizeBatchKernel(Division<kWidth> division, const T* __restrict__ x,
                         Sums<kWidth> sums, Variables variables, Channels of,
                         T* __restrict__ y) {
  double total[2 * kWidth];
  sums.Total(division.tiles, total);
  if (!division.HasChannels()) return;
  const int64_t rows = division.tiles.rows;
  Factors f[kWidth];
  for (int j = 0; j < kWidth; ++j) {
    const int64_t c = division.Channel() + j;
    const double offset = total[2 * j] / rows;
    const double variance = total[2 * j + 1] / rows - offset * offset;
    // Rounding may leave it below 0. NaN stays NaN.
    f[j] = Factorize(of, variables, c, static_cast<float>(of.pivot[c] + offset),
                     variance < 0 ? 0 : static_cast<float>(variance));
  }
  Normalize<kRelu>(division, x, f, y);
}

template <bool kRelu, int kWidth, typename T>
__global__ void NormalizeKernel(Division<kWidth> division, const T* x,
                                BatchNormalization::Moments moments,
                                Variables variables, Channels of, T* y) {
  if (!division.HasChannels()) return;
  Factors f[kWidth];
  for (int j = 0; j < kWidth; ++j) {
    const int64_t c = division.Channel() + j;
    // A moving variance may be below 0. NaN stays NaN.
    const float variance = moments.variance[c] < 0 ? 0 : moments.variance[c];
    f[j] = Factorize(of, variables, c, moments.mean[c], variance);
  }
  Normalize<kRelu>(division, x, f, y);
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
template <bool kRelu, int kWidth, typename T>
struct GradientTerm {
  const T* x;
  const T* dy;
  int64_t columns;
  Channels of;
  __device__ void operator()(int64_t row, int64_t column,
                             float (&sums)[2 * kWidth]) const {
    const int64_t i = (row * columns + column) * kWidth;
    const Pack<kWidth> inputs = Load<kWidth>(x + i);
    const Pack<kWidth> gradients = Load<kWidth>(dy + i);
    for (int j = 0; j < kWidth; ++j) {
      const Factors f = FactorsOf(of, column * kWidth + j);
      const float difference = inputs.values[j] - f.mean;
      const float gradient =
          GradientBeforeRelu<kRelu>(f, difference, gradients.values[j]);
      sums[2 * j] += gradient;
      sums[2 * j + 1] += gradient * difference;
    }
  }
};

// What the backward pass writes of each channel.
struct ChannelGradients {
  float* dgamma;
  float* dbeta;
  BatchNormalization::MomentsUpdate update;
  float rate;
  float unbiased;
  bool of_evaluation;
  __device__ void Write(const Channels& of, int64_t c,
                        const double* sums) const {
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
template <bool kRelu, int kWidth, typename T>
__global__ void __launch_bounds__(Tiles::kThreads, kGradientBlocks)
    GradientsKernel(Division<kWidth> division, const T* __restrict__ x,
                    const T* __restrict__ dy, Sums<kWidth> sums, Channels of,
                    ChannelGradients gradients, T* __restrict__ dx) {
  double total[2 * kWidth];
  sums.Total(division.tiles, total);
  if (!division.HasChannels()) return;
  const int64_t rows = division.tiles.rows;
  Factors f[kWidth];
  float constant[kWidth];
  float slope[kWidth];
  for (int j = 0; j < kWidth; ++j) {
    const int64_t c = division.Channel() + j;
    if (blockIdx.y == 0 && threadIdx.y == 0) {
      gradients.Write(of, c, &total[2 * j]);
    }
    f[j] = FactorsOf(of, c);
    constant[j] = 0;
    slope[j] = 0;
    if (gradients.of_evaluation) continue;
    const double inverse = of.inverse[c];
    constant[j] = static_cast<float>(f[j].scale * total[2 * j] / rows);
    slope[j] = static_cast<float>(f[j].scale * inverse * inverse *
                                  total[2 * j + 1] / rows);
  }
  if (dx == nullptr) return;
  division.tiles.ForEachRow([&](int64_t row) {
    const int64_t i = division.Place(row);
    const Pack<kWidth> inputs = Load<kWidth>(x + i);
    Pack<kWidth> values = Load<kWidth>(dy + i);
    for (int j = 0; j < kWidth; ++j) {
      const float difference = inputs.values[j] - f[j].mean;
      const float gradient =
          GradientBeforeRelu<kRelu>(f[j], difference, values.values[j]);
      values.values[j] =
          f[j].scale * gradient - constant[j] - difference * slope[j];
    }
    Store(values, dx + i);
  });
}

struct WriteChange {
  Channels of;
  ChannelGradients changes;
  __device__ void operator()(int64_t c) const {
    changes.Write(of, c, /*sums=*/nullptr);
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
         {&channels_.pivot, &channels_.mean, &channels_.variance,
          &channels_.inverse, &channels_.scale, &channels_.shift}) {
      *array = next;
      next += shape.channels;
    }
  }

  absl::Status ForwardTraining(ConstElements x, const float* gamma,
                               const float* beta, ConstElements term,
                               Elements y) override {
    RETURN_IF_ERROR(NormalizeBatch(x, gamma, beta, y));
    return AddTerm(term, y);
  }

  absl::Status ForwardEvaluation(ConstElements x, const float* gamma,
                                 const float* beta, const Moments& moving,
                                 ConstElements term, Elements y) override {
    RETURN_IF_ERROR(NormalizeByMoving(x, gamma, beta, moving, y));
    return AddTerm(term, y);
  }

  absl::Status BackwardOfSum(ConstElements x, ConstElements y, Elements dy,
                             const Gradients& gradients,
                             const MomentsUpdate& update) override {
    if (options_.epilogue == Epilogue::kRelu) {
      RETURN_IF_ERROR(cuda::ReluGradient(device_, y, dy, shape_.size(), dy));
    }
    return Backward(x, dy, gradients, update);
  }

  absl::Status Backward(ConstElements x, ConstElements dy,
                        const Gradients& gradients,
                        const MomentsUpdate& update) override {
    ChannelGradients of_channels = ChangesOf(update);
    of_channels.dgamma = gradients.dgamma;
    of_channels.dbeta = gradients.dbeta;
    of_channels.of_evaluation = gradients.of_evaluation;
    return WithKernels(
        x.type(), [&]<bool kRelu, int kWidth, typename T>() -> absl::Status {
          using Term = GradientTerm<kRelu, kWidth, T>;
          const Division<kWidth> division(shape_.rows, shape_.channels);
          const Tiles& tiles = division.tiles;
          ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
          ASSIGN_OR_RETURN(const Sums<kWidth> sums,
                           NewSliceSums<2 * kWidth>(device_, tiles));
          Launch(SumSliceKernel<2 * kWidth, Term, Sums<kWidth>>,
                 tiles.Blocks(tiles.slices), tiles.Threads(), stream, tiles,
                 Term{x.As<T>(), dy.As<T>(), tiles.columns, channels_}, sums);
          RETURN_IF_ERROR(
              LaunchStatus("gradients' sums of a batch normalization"));
          Launch(GradientsKernel<kRelu, kWidth, T>,
                 gradients.dx == nullptr ? tiles.Blocks(1) : BlocksOf(tiles),
                 tiles.Threads(), stream, division, x.As<T>(), dy.As<T>(), sums,
                 channels_, of_channels, gradients.dx.As<T>());
          return LaunchStatus("gradients of a batch normalization");
        });
  }

  absl::Status ChangeMoments(const MomentsUpdate& update) override {
    return ForEach(device_, "a change of moving moments", shape_.channels,
                   WriteChange{channels_, ChangesOf(update)});
  }

 private:
  ChannelGradients ChangesOf(const MomentsUpdate& update) const {
    return {.dgamma = nullptr,
            .dbeta = nullptr,
            .update = update,
            .rate = static_cast<float>(1 - update.momentum),
            .unbiased = static_cast<float>(shape_.unbiased()),
            .of_evaluation = false};
  }

  absl::Status NormalizeBatch(ConstElements x, const float* gamma,
                              const float* beta, Elements y) {
    return WithKernels(
        x.type(), [&]<bool kRelu, int kWidth, typename T>() -> absl::Status {
          const Division<kWidth> division(shape_.rows, shape_.channels);
          const Tiles& tiles = division.tiles;
          ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
          ASSIGN_OR_RETURN(const Sums<kWidth> sums,
                           NewSliceSums<2 * kWidth>(device_, tiles));
          Launch(SumMomentsKernel<kWidth, T>, tiles.Blocks(tiles.slices),
                 tiles.Threads(), stream, division, x.As<T>(), channels_.pivot,
                 sums);
          RETURN_IF_ERROR(LaunchStatus("moments of a batch"));
          Launch(NormalizeBatchKernel<kRelu, kWidth, T>, BlocksOf(tiles),
                 tiles.Threads(), stream, division, x.As<T>(), sums,
                 VariablesOf(gamma, beta), channels_, y.As<T>());
          return LaunchStatus("batch normalization");
        });
  }

  absl::Status NormalizeByMoving(ConstElements x, const float* gamma,
                                 const float* beta, const Moments& moving,
                                 Elements y) {
    return WithKernels(
        x.type(), [&]<bool kRelu, int kWidth, typename T>() -> absl::Status {
          const Division<kWidth> division(shape_.rows, shape_.channels);
          ASSIGN_OR_RETURN(CUstream_st * stream, device_.ComputeStream());
          Launch(NormalizeKernel<kRelu, kWidth, T>, BlocksOf(division.tiles),
                 division.tiles.Threads(), stream, division, x.As<T>(), moving,
                 VariablesOf(gamma, beta), channels_, y.As<T>());
          return LaunchStatus("batch normalization by moving moments");
        });
  }

  // Adds the term in place, behind the kernels that normalise.
  absl::Status AddTerm(ConstElements term, Elements y) {
    if (!options_.has_term) return absl::OkStatus();
    return cuda::Add(device_, y, term, shape_.size(),
                     options_.epilogue == Epilogue::kRelu ? AddEpilogue::kRelu
                                                          : AddEpilogue::kNone,
                     y);
  }

  // Returns launch.operator()<kRelu, kWidth, T>() for the epilogue and the type
  // of images. Two channels of bfloat16 are one access of 4 bytes, as one of
  // float32 is.
  template <typename Launcher>
  absl::Status WithKernels(EdgeType type, const Launcher& launch) const {
    if (type == EdgeType::kFloat32) return WithRelu<1, float>(launch);
    return shape_.channels % 2 == 0 ? WithRelu<2, Bfloat16>(launch)
                                    : WithRelu<1, Bfloat16>(launch);
  }
  template <int kWidth, typename T, typename Launcher>
  absl::Status WithRelu(const Launcher& launch) const {
    return options_.epilogue == Epilogue::kRelu && !options_.has_term
               ? launch.template operator()<true, kWidth, T>()
               : launch.template operator()<false, kWidth, T>();
  }

  // Blocks of a kernel that goes over x.
  static dim3 BlocksOf(const Tiles& tiles) {
    return tiles.Blocks(tiles.SlicesOf(
        kRowsOfAThread, std::min(kMaxSlices, tiles.SlicesFor(kBlocks))));
  }
  Variables VariablesOf(const float* gamma, const float* beta) const {
    return {gamma, beta, static_cast<float>(options_.epsilon)};
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

#include "ml/kernel/image/winograd.h"

#include <algorithm>

#include "base/status_macros.h"
#include "ml/device/cpu_device.h"
#include "ml/device/parallel.h"
#include "ml/kernel/image/winograd_products.h"

namespace parasol::cpu {
namespace {

using winograd::kLanes;
using winograd::kPositions;
using winograd::kTileGroup;
using winograd::TileAxis;
using winograd::TileBlock;
using winograd::Tiling;

constexpr int64_t kWindow = 3;
constexpr int64_t kTaps = kWindow * kWindow;
// Images of fewer pixels, or of an odd number below kFewOddPixels along an
// axis, waste too much of their tiles.
constexpr int64_t kFewPixels = 4;
constexpr int64_t kFewOddPixels = 7;
// Elements of a kernel above which each block reads its factors from memory.
constexpr int64_t kMostKernelElements = 256 * 256;

// Channels and filters together up to which the buffers of kTileGroup tiles
// and the kernel stay in the first cache.
constexpr int64_t kFewChannels = 32;
// Elements of a kernel from which more tiles of a block pay for reading it.
constexpr int64_t kManyKernelElements = 128 * 128;

// Products that a thread computes in some 10 µs.
constexpr int64_t kProductsOfGrain = 1 << 19;

bool FitsAxis(const WindowAxis& axis) {
  return axis.window == kWindow && axis.stride == 1 && axis.before >= 0 &&
         axis.before < kWindow &&
         axis.output >= (axis.output % 2 == 0 ? kFewPixels : kFewOddPixels);
}

// Numbers of tiles of a block, by measurement.
int64_t TilesForOutputs(const Tiling& tiling) {
  if (tiling.channels + tiling.filters <= kFewChannels) return kTileGroup;
  return tiling.channels * tiling.filters < kManyKernelElements
             ? 2 * kTileGroup
             : 8 * kTileGroup;
}

// The sums of a kernel are read and written for each block.
int64_t TilesForKernels(const Tiling& tiling) {
  if (tiling.channels + tiling.filters <= kFewChannels) return kTileGroup;
  return tiling.channels * tiling.filters < kManyKernelElements
             ? 4 * kTileGroup
             : 8 * kTileGroup;
}

// The convolution of the outputs' gradients that is the input's gradient.
TileAxis TurnedAxis(const TileAxis& axis) {
  return {.input = axis.output,
          .before = kWindow - 1 - axis.before,
          .output = axis.input};
}

Tiling Turned(const Tiling& tiling) {
  return {.examples = tiling.examples,
          .height = TurnedAxis(tiling.height),
          .width = TurnedAxis(tiling.width),
          .channels = tiling.filters,
          .filters = tiling.channels};
}

TileAxis AxisOf(const WindowAxis& axis) {
  return {.input = axis.input, .before = axis.before, .output = axis.output};
}

int64_t BlocksOf(const Tiling& tiling, int64_t capacity) {
  return (tiling.tiles() + capacity - 1) / capacity;
}

// Blocks that one thread computes at least.
int64_t GrainOf(const Tiling& tiling, int64_t capacity) {
  const int64_t products =
      kPositions * capacity * tiling.channels * tiling.filters;
  return std::max<int64_t>(kProductsOfGrain / products, 1);
}

// Returns the floats of a part's two buffers.
int64_t BuffersSize(const Tiling& tiling, int64_t capacity) {
  return TileBlock::BufferSize(capacity, tiling.channels) +
         TileBlock::BufferSize(capacity, tiling.filters);
}

TileBlock BlockAt(const Tiling& tiling, int64_t capacity, int64_t block) {
  return {.capacity = capacity,
          .begin = block * capacity,
          .end = std::min((block + 1) * capacity, tiling.tiles())};
}

int64_t FactorsOf(const Tiling& tiling) {
  return kPositions * tiling.channels * tiling.filters;
}

// Elements that a thread adds in some 10 µs.
constexpr int64_t kElementsOfGrain = 1 << 16;

}  // namespace

#if defined(__x86_64__)

bool Winograd::Fits(const ConvolutionShape& shape) {
  static const bool is_supported =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma");
  return is_supported && FitsAxis(shape.height) && FitsAxis(shape.width) &&
         shape.channels % kLanes == 0 && shape.filters % kLanes == 0 &&
         shape.channels * shape.filters <= kMostKernelElements;
}

Winograd::Winograd(Device& device, const ConvolutionShape& shape)
    : device_(device),
      tiling_{.examples = shape.examples,
              .height = AxisOf(shape.height),
              .width = AxisOf(shape.width),
              .channels = shape.channels,
              .filters = shape.filters} {}

Winograd::Pass Winograd::NewPass(const Tiling& tiling, int64_t capacity) const {
  Pass pass;
  pass.tiling = tiling;
  pass.capacity = capacity;
  pass.parts =
      PartsOf(device_, BlocksOf(tiling, capacity), GrainOf(tiling, capacity));
  return pass;
}

void Winograd::ForEachPart(const Pass& pass,
                           absl::FunctionRef<void(const Part& part)> body) {
  const int64_t size = BuffersSize(pass.tiling, pass.capacity);
  ParallelFor(
      device_, BlocksOf(pass.tiling, pass.capacity),
      GrainOf(pass.tiling, pass.capacity),
      [&](int64_t part, int64_t begin, int64_t end) {
        float* const channels = pass.buffers + part * size;
        body({.index = part,
              .begin = begin,
              .end = end,
              .channels = channels,
              .filters = channels + TileBlock::BufferSize(
                                        pass.capacity, pass.tiling.channels)});
      });
}

void Winograd::Convolve(const Pass& pass, const float* x, const float* kernel,
                        const float* bias, Epilogue epilogue, float* y) {
  const Tiling& tiling = pass.tiling;
  ParallelFor(device_, tiling.filters / kLanes,
              kElementsOfGrain / (kPositions * kLanes * tiling.channels) + 1,
              [&](int64_t /*part*/, int64_t begin, int64_t end) {
                winograd::TransformKernel(kernel, tiling.channels,
                                          tiling.filters, begin * kLanes,
                                          end * kLanes, pass.factors);
              });
  ForEachPart(pass, [&](const Part& part) {
    for (int64_t i = part.begin; i < part.end; ++i) {
      const TileBlock block = BlockAt(tiling, pass.capacity, i);
      winograd::TransformPixels(tiling, block, x, part.channels);
      winograd::MultiplyByKernel(tiling, block, part.channels, pass.factors,
                                 winograd::PixelsBelow(tiling, block, x),
                                 winograd::OutputsBelow(tiling, block, y),
                                 part.filters);
      winograd::WriteOutputs(tiling, block, part.filters, bias, epilogue, y);
    }
  });
}

absl::Status Winograd::Forward(const float* x, const float* kernel,
                               const float* bias, Epilogue epilogue, float* y) {
  Pass pass = NewPass(tiling_, TilesForOutputs(tiling_));
  ASSIGN_OR_RETURN(pass.factors,
                   static_cast<CpuDevice&>(device_).Scratch(
                       FactorsOf(tiling_) +
                       pass.parts * BuffersSize(tiling_, pass.capacity)));
  pass.buffers = pass.factors + FactorsOf(tiling_);
  Convolve(pass, x, kernel, bias, epilogue, y);
  return absl::OkStatus();
}

absl::Status Winograd::KernelGradient(const float* x, const float* dy,
                                      float* dkernel) {
  Pass pass = NewPass(tiling_, TilesForKernels(tiling_));
  const int64_t size = FactorsOf(tiling_);
  ASSIGN_OR_RETURN(
      pass.factors,
      static_cast<CpuDevice&>(device_).Scratch(
          pass.parts * (size + BuffersSize(tiling_, pass.capacity))));
  pass.buffers = pass.factors + pass.parts * size;
  float* const sums = pass.factors;
  ForEachPart(pass, [&](const Part& part) {
    float* const own = sums + part.index * size;
    std::fill_n(own, size, 0.0f);
    for (int64_t i = part.begin; i < part.end; ++i) {
      const TileBlock block = BlockAt(tiling_, pass.capacity, i);
      winograd::TransformPixels(tiling_, block, x, part.channels);
      winograd::TransformGradients(tiling_, block, dy, part.filters);
      winograd::AddProducts(tiling_, block, part.channels, part.filters,
                            winograd::PixelsBelow(tiling_, block, x),
                            winograd::OutputsBelow(tiling_, block, dy), own);
    }
  });
  if (pass.parts > 1) {
    ParallelFor(device_, size, kElementsOfGrain,
                [&](int64_t /*part*/, int64_t begin, int64_t end) {
                  for (int64_t part = 1; part < pass.parts; ++part) {
                    const float* const addend = sums + part * size;
                    for (int64_t i = begin; i < end; ++i) sums[i] += addend[i];
                  }
                });
  }
  winograd::WriteKernelGradient(sums, tiling_.channels, tiling_.filters,
                                dkernel);
  return absl::OkStatus();
}

absl::Status Winograd::InputGradient(const float* dy, const float* kernel,
                                     float* dx) {
  const Tiling turned = Turned(tiling_);
  const int64_t kernel_size = kTaps * turned.channels * turned.filters;
  Pass pass = NewPass(turned, TilesForOutputs(turned));
  ASSIGN_OR_RETURN(pass.factors,
                   static_cast<CpuDevice&>(device_).Scratch(
                       FactorsOf(turned) + kernel_size +
                       pass.parts * BuffersSize(turned, pass.capacity)));
  float* const turned_kernel = pass.factors + FactorsOf(turned);
  pass.buffers = turned_kernel + kernel_size;
  winograd::TurnKernel(kernel, tiling_.channels, tiling_.filters,
                       turned_kernel);
  Convolve(pass, dy, turned_kernel, /*bias=*/nullptr, Epilogue::kNone, dx);
  return absl::OkStatus();
}

#else

bool Winograd::Fits(const ConvolutionShape& /*shape*/) { return false; }

Winograd::Winograd(Device& device, const ConvolutionShape& /*shape*/)
    : device_(device), tiling_{} {}

absl::Status Winograd::Forward(const float*, const float*, const float*,
                               Epilogue, float*) {
  return absl::UnimplementedError("this processor has no AVX-512");
}

absl::Status Winograd::KernelGradient(const float*, const float*, float*) {
  return absl::UnimplementedError("this processor has no AVX-512");
}

absl::Status Winograd::InputGradient(const float*, const float*, float*) {
  return absl::UnimplementedError("this processor has no AVX-512");
}

#endif

}  // namespace parasol::cpu

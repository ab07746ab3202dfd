#include "ml/kernel/image/winograd.h"

#include <algorithm>

#include "base/status_macros.h"
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
// Images of fewer pixels, or of an odd number below kFewOddPixels along an
// axis, waste too much of their tiles.
constexpr int64_t kFewPixels = 4;
constexpr int64_t kFewOddPixels = 7;
// Above it the factors of a kernel are read from memory for each block.
constexpr int64_t kMostKernelElements = 256 * 256;

// Channels and filters together up to which the buffers of kTileGroup tiles
// and the kernel stay in the first cache.
constexpr int64_t kFewChannels = 32;
// Elements of a kernel from which more tiles of a block pay for reading it.
constexpr int64_t kManyKernelElements = 128 * 128;

// Products that a thread computes in some 10 µs.
constexpr int64_t kProductsOfGrain = 1 << 19;

bool FitsAxis(const WindowAxis& axis) {
  return axis.window == kWindow && axis.stride == 1 &&
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

// Floats of a part's two buffers, which are side by side.
int64_t BuffersSize(const Tiling& tiling, int64_t capacity) {
  return TileBlock::BufferSize(capacity, tiling.channels) +
         TileBlock::BufferSize(capacity, tiling.filters);
}

TileBlock BlockAt(const Tiling& tiling, int64_t capacity, int64_t block) {
  return {.capacity = capacity,
          .begin = block * capacity,
          .end = std::min((block + 1) * capacity, tiling.tiles())};
}

}  // namespace

#if defined(__x86_64__)

bool Winograd::Fits(const ConvolutionShape& shape) {
  static const bool is_supported =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma");
  return is_supported && FitsAxis(shape.height) && FitsAxis(shape.width) &&
         shape.channels % kLanes == 0 && shape.filters % kLanes == 0 &&
         shape.channels * shape.filters <= kMostKernelElements;
}

#else

bool Winograd::Fits(const ConvolutionShape& /*shape*/) { return false; }

#endif

Winograd::Winograd(Device& device, const ConvolutionShape& shape)
    : device_(device),
      tiling_{.examples = shape.examples,
              .height = AxisOf(shape.height),
              .width = AxisOf(shape.width),
              .channels = shape.channels,
              .filters = shape.filters} {}

absl::StatusOr<Winograd::Pass> Winograd::NewPass(const Tiling& tiling,
                                                 int64_t capacity,
                                                 bool has_sums) {
  Pass pass;
  pass.tiling = tiling;
  pass.capacity = capacity;
  pass.parts =
      PartsOf(device_, BlocksOf(tiling, capacity), GrainOf(tiling, capacity));
  const int64_t factors = kPositions * tiling.channels * tiling.filters;
  ASSIGN_OR_RETURN(
      pass.buffers,
      device_.NewArray<float>(pass.parts * BuffersSize(tiling, capacity)));
  ASSIGN_OR_RETURN(pass.factors, device_.NewArray<float>(
                                     (has_sums ? pass.parts : 1) * factors));
  return pass;
}

template <typename Body>
void Winograd::ForEachBlock(Pass& pass, Body body) {
  const int64_t size = BuffersSize(pass.tiling, pass.capacity);
  const int64_t of_channels =
      TileBlock::BufferSize(pass.capacity, pass.tiling.channels);
  ParallelFor(device_, BlocksOf(pass.tiling, pass.capacity),
              GrainOf(pass.tiling, pass.capacity),
              [&](int64_t part, int64_t begin, int64_t end) {
                float* const channels = pass.buffers.data() + part * size;
                for (int64_t block = begin; block < end; ++block) {
                  body(part, BlockAt(pass.tiling, pass.capacity, block),
                       channels, channels + of_channels);
                }
              });
}

void Winograd::Convolve(Pass& pass, const float* x, const float* kernel,
                        const float* bias, Epilogue epilogue, float* y) {
  const Tiling& tiling = pass.tiling;
  winograd::TransformKernel(kernel, tiling.channels, tiling.filters,
                            pass.factors.data());
  ForEachBlock(pass, [&](int64_t /*part*/, const TileBlock& block,
                         float* pixels, float* sums) {
    winograd::TransformPixels(tiling, block, x, pixels);
    winograd::MultiplyByKernel(tiling, block, pixels, pass.factors.data(),
                               winograd::PixelsBelow(tiling, block, x),
                               winograd::OutputsBelow(tiling, block, y), sums);
    winograd::WriteOutputs(tiling, block, sums, bias, epilogue, y);
  });
}

absl::Status Winograd::Forward(const float* x, const float* kernel,
                               const float* bias, Epilogue epilogue, float* y) {
  if (!forward_) {
    ASSIGN_OR_RETURN(forward_, NewPass(tiling_, TilesForOutputs(tiling_),
                                       /*has_sums=*/false));
  }
  Convolve(*forward_, x, kernel, bias, epilogue, y);
  return absl::OkStatus();
}

absl::Status Winograd::KernelGradient(const float* x, const float* dy,
                                      float* dkernel) {
  if (!kernel_gradient_) {
    ASSIGN_OR_RETURN(kernel_gradient_,
                     NewPass(tiling_, TilesForKernels(tiling_),
                             /*has_sums=*/true));
  }
  Pass& pass = *kernel_gradient_;
  const int64_t size = kPositions * tiling_.channels * tiling_.filters;
  float* const sums = pass.factors.data();
  std::fill_n(sums, pass.factors.size(), 0.0f);
  ForEachBlock(pass, [&](int64_t part, const TileBlock& block, float* pixels,
                         float* gradients) {
    winograd::TransformPixels(tiling_, block, x, pixels);
    winograd::TransformGradients(tiling_, block, dy, gradients);
    winograd::AddProducts(tiling_, block, pixels, gradients,
                          winograd::PixelsBelow(tiling_, block, x),
                          winograd::OutputsBelow(tiling_, block, dy),
                          sums + part * size);
  });
  for (int64_t part = 1; part < pass.parts; ++part) {
    for (int64_t i = 0; i < size; ++i) sums[i] += sums[part * size + i];
  }
  winograd::WriteKernelGradient(sums, tiling_.channels, tiling_.filters,
                                dkernel);
  return absl::OkStatus();
}

absl::Status Winograd::InputGradient(const float* dy, const float* kernel,
                                     float* dx) {
  if (!input_gradient_) {
    const Tiling turned = Turned(tiling_);
    ASSIGN_OR_RETURN(turned_kernel_,
                     device_.NewArray<float>(kWindow * kWindow *
                                             turned.channels * turned.filters));
    ASSIGN_OR_RETURN(input_gradient_, NewPass(turned, TilesForOutputs(turned),
                                              /*has_sums=*/false));
  }
  winograd::TurnKernel(kernel, tiling_.channels, tiling_.filters,
                       turned_kernel_.data());
  Convolve(*input_gradient_, dy, turned_kernel_.data(), /*bias=*/nullptr,
           Epilogue::kNone, dx);
  return absl::OkStatus();
}

}  // namespace parasol::cpu

#ifndef PARASOL_ML_KERNEL_IMAGE_WINOGRAD_TILES_H_
#define PARASOL_ML_KERNEL_IMAGE_WINOGRAD_TILES_H_

#include <cstdint>

#include "ml/kernel/affine.h"

// The steps of Winograd's minimal filtering F(2×2, 3×3) on a processor with
// AVX-512 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
// 2015, section 4.1). A tile is 2 × 2 pixels y of the output, which 4 × 4
// pixels d of the input reach through a window g of 3 × 3. With
//   Bᵀ = [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1]
//   G  = [1 0 0; ½ ½ ½; ½ -½ ½; 0 0 1]
//   Aᵀ = [1 1 1 0; 0 1 -1 -1]
// a tile is
//   y = Aᵀ · (Σ over channels of (G·g·Gᵀ) ⊙ (Bᵀ·d·B)) · A,
// which multiplies 16 times for a channel and a filter where the sum over the
// window multiplies 36 times. ⊙ multiplies each of the 16 positions of its 4 ×
// 4 factors. The gradient of the window is
//   dg = Gᵀ · (Σ over tiles of (Bᵀ·d·B) ⊙ (A·dy·Aᵀ)) · G.
//
// Each position is one product of matrices. All functions run on the calling
// thread, keep no state, and need no alignment of images and kernels.
namespace parasol::cpu::winograd {

// Channels or filters of one vector: both are multiples of it.
inline constexpr int64_t kLanes = 16;
inline constexpr int64_t kPositions = 16;
// Floats from a tile of a block to the next one.
inline constexpr int64_t kTileStride = (kPositions + 1) * kLanes;
// Tiles of a block are reserved in such groups.
inline constexpr int64_t kTileGroup = 8;

struct TileAxis {
  int64_t input = 0;   // pixels
  int64_t before = 0;  // pixels of padding before the first one
  int64_t output = 0;  // pixels

  int64_t tiles() const { return (output + 1) / 2; }
};

// Images [examples, height, width, channels] and outputs [examples, height,
// width, filters]. Tiles are numbered by example, row and column.
struct Tiling {
  int64_t examples = 0;
  TileAxis height;
  TileAxis width;
  int64_t channels = 0;
  int64_t filters = 0;

  int64_t tiles() const { return examples * height.tiles() * width.tiles(); }
};

// The tiles [begin, end), at most `capacity`, whose values are in a buffer
// [channels / kLanes][capacity][kPositions + 1][kLanes]. The room behind a
// tile's positions keeps the same position of many tiles from having one place
// in the cache.
struct TileBlock {
  int64_t capacity = 0;  // a multiple of kTileGroup
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  // Floats from a vector of channels to the next one.
  int64_t stride() const { return capacity * kTileStride; }
  // Number of floats of a buffer.
  static int64_t BufferSize(int64_t capacity, int64_t channels) {
    return channels / kLanes * capacity * kTileStride;
  }
};

// Lines of the cache that will be read or written some time after the block:
// about as many as the block reads or writes for the first time. They may lie
// behind the array.
struct Fetch {
  const float* from = nullptr;
  int64_t lines = 0;
};
Fetch PixelsBelow(const Tiling& tiling, const TileBlock& block, const float* x);
Fetch OutputsBelow(const Tiling& tiling, const TileBlock& block,
                   const float* y);

// Writes Bᵀ·d·B of the block's tiles to a buffer of `tiling.channels`.
void TransformPixels(const Tiling& tiling, const TileBlock& block,
                     const float* x, float* out);

// Writes A·dy·Aᵀ of the block's tiles to a buffer of `tiling.filters`.
void TransformGradients(const Tiling& tiling, const TileBlock& block,
                        const float* dy, float* out);

// Writes the block's tiles of the output: epilogue(Aᵀ·sums·A + bias); no bias
// when null.
void WriteOutputs(const Tiling& tiling, const TileBlock& block,
                  const float* sums, const float* bias, Epilogue epilogue,
                  float* y);

}  // namespace parasol::cpu::winograd

#endif  // PARASOL_ML_KERNEL_IMAGE_WINOGRAD_TILES_H_

#ifndef PARASOL_ML_KERNEL_IMAGE_WINOGRAD_PRODUCTS_H_
#define PARASOL_ML_KERNEL_IMAGE_WINOGRAD_PRODUCTS_H_

#include <cstdint>

#include "ml/kernel/image/winograd_tiles.h"

// The sums of products of Winograd's filtering, and what becomes of kernels
// (winograd_tiles.h has the formulas). A kernel's 4 × 4 factors G·g·Gᵀ are
// [kPositions] [filters / kLanes][channels][kLanes].
namespace parasol::cpu::winograd {

// Writes the factors of the filters [begin, end), multiples of kLanes, of a
// kernel [3, 3, channels, filters] to `out`, which has room for all filters'
// factors.
void TransformKernel(const float* kernel, int64_t channels, int64_t filters,
                     int64_t begin, int64_t end, float* out);

// Writes the kernel with which a convolution of outputs' gradients is the
// gradient of the input: `kernel` [3, 3, channels, filters] turned by half a
// turn, as [3, 3, filters, channels].
void TurnKernel(const float* kernel, int64_t channels, int64_t filters,
                float* out);

// Two functions that take longer than memory needs to answer, so they fetch
// lines for later blocks meanwhile.
//
// MultiplyByKernel() writes the sums over channels of the products of `pixels`,
// as TransformPixels() leaves them, and `kernel`, as TransformKernel() does, to
// a buffer of `tiling.filters`.
void MultiplyByKernel(const Tiling& tiling, const TileBlock& block,
                      const float* pixels, const float* kernel,
                      const Fetch& to_read, const Fetch& to_write, float* out);
// AddProducts() adds the products of `pixels` and `gradients`, as
// TransformPixels() and TransformGradients() leave them, to `sums`, which are
// laid out like factors. Both fetches are of lines to read.
void AddProducts(const Tiling& tiling, const TileBlock& block,
                 const float* pixels, const float* gradients,
                 const Fetch& of_pixels, const Fetch& of_gradients,
                 float* sums);

// Writes Gᵀ·sums·G to `dkernel` [3, 3, channels, filters].
void WriteKernelGradient(const float* sums, int64_t channels, int64_t filters,
                         float* dkernel);

}  // namespace parasol::cpu::winograd

#endif  // PARASOL_ML_KERNEL_IMAGE_WINOGRAD_PRODUCTS_H_

#include "ml/kernel/image/winograd_products.h"

#if defined(__x86_64__)

#include "ml/kernel/image/winograd_vector.h"

namespace parasol::cpu::winograd {
namespace {

constexpr int kSide = 4;
constexpr int64_t kTaps = 9;

// Sums that MultiplyByKernel() keeps in registers: kTileGroup tiles of
// kFilterVectors vectors of filters. AddProducts() keeps as many.
constexpr int kFilterVectors = 2;
constexpr int64_t kWide = kFilterVectors * kLanes;

enum Purpose { kToRead, kToWrite };

// Fetches the share of one position, so that memory has the time of all
// products to answer: a processor has some ten requests on their way at once.
template <Purpose kPurpose>
PARASOL_AVX512_INLINE void FetchAt(const Fetch& fetch, int64_t position) {
  const int64_t end = fetch.lines * (position + 1) / kPositions;
  for (int64_t i = fetch.lines * position / kPositions; i < end; ++i) {
    __builtin_prefetch(fetch.from + i * kLanes, kPurpose);
  }
}

// kTileGroup tiles and kVectors vectors of filters at one position, whose first
// elements are at `pixels` and `out`. Vectors are `stride` apart.
template <int kVectors>
PARASOL_AVX512_INLINE void MultiplyGroup(const float* pixels, int64_t stride,
                                         int64_t channels, const float* kernel,
                                         float* out) {
  Vector sums[kTileGroup][kVectors];
#pragma GCC unroll 8
  for (int t = 0; t < kTileGroup; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[t][v] = Zero();
  }
  for (int64_t c = 0; c < channels; c += kLanes, pixels += stride) {
#pragma GCC unroll 4
    for (int64_t lane = 0; lane < kLanes; ++lane, kernel += kLanes) {
      Vector factors[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        factors[v] = Load(kernel + v * channels * kLanes);
      }
#pragma GCC unroll 8
      for (int t = 0; t < kTileGroup; ++t) {
        const Vector pixel = _mm512_set1_ps(pixels[t * kTileStride + lane]);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          sums[t][v] = _mm512_fmadd_ps(pixel, factors[v], sums[t][v]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < kTileGroup; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      Store(out + t * kTileStride + v * stride, sums[t][v]);
    }
  }
}

// kChannels channels and kVectors vectors of filters at one position.
template <int kChannels, int kVectors>
PARASOL_AVX512_INLINE void AddProductsOf(const float* pixels,
                                         const float* gradients,
                                         const TileBlock& block,
                                         int64_t channels, float* sums) {
  const int64_t tiles = block.size();
  const int64_t stride = block.stride();
  Vector added[kChannels][kVectors];
#pragma GCC unroll 16
  for (int c = 0; c < kChannels; ++c) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) added[c][v] = Zero();
  }
#pragma GCC unroll 4
  for (int64_t t = 0; t < tiles; ++t) {
    Vector factors[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      factors[v] = Load(gradients + t * kTileStride + v * stride);
    }
#pragma GCC unroll 16
    for (int c = 0; c < kChannels; ++c) {
      const Vector pixel = _mm512_set1_ps(pixels[t * kTileStride + c]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        added[c][v] = _mm512_fmadd_ps(pixel, factors[v], added[c][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int c = 0; c < kChannels; ++c) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* const to = sums + (c + v * channels) * kLanes;
      Store(to, Load(to) + added[c][v]);
    }
  }
}

// G · a column of three.
struct KernelColumn {
  Vector at[kSide];
};

PARASOL_AVX512_INLINE KernelColumn TransformTaps(Vector a, Vector b, Vector c) {
  const Vector half = _mm512_set1_ps(.5f);
  const Vector outer = (a + c) * half;
  const Vector inner = b * half;
  return {{a, outer + inner, outer - inner, c}};
}

// Gᵀ · a column of four.
struct TapColumn {
  Vector at[3];
};

PARASOL_AVX512_INLINE TapColumn TransformBack(Vector a, Vector b, Vector c,
                                              Vector d) {
  const Vector half = _mm512_set1_ps(.5f);
  const Vector sum = (b + c) * half;
  return {{a + sum, (b - c) * half, sum + d}};
}

}  // namespace

PARASOL_AVX512 void TransformKernel(const float* kernel, int64_t channels,
                                    int64_t filters, int64_t begin, int64_t end,
                                    float* out) {
  const int64_t size = channels * filters;
  for (int64_t f = begin; f < end; f += kLanes) {
    for (int64_t c = 0; c < channels; ++c) {
      const float* const from = kernel + c * filters + f;
      float* const to = out + f * channels + c * kLanes;
      KernelColumn columns[3];
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) {
        columns[j] =
            TransformTaps(Load(from + j * size), Load(from + (3 + j) * size),
                          Load(from + (6 + j) * size));
      }
#pragma GCC unroll 4
      for (int i = 0; i < kSide; ++i) {
        const KernelColumn row =
            TransformTaps(columns[0].at[i], columns[1].at[i], columns[2].at[i]);
#pragma GCC unroll 4
        for (int j = 0; j < kSide; ++j) {
          Store(to + (i * kSide + j) * size, row.at[j]);
        }
      }
    }
  }
}

void TurnKernel(const float* kernel, int64_t channels, int64_t filters,
                float* out) {
  const int64_t size = channels * filters;
  for (int64_t tap = 0; tap < kTaps; ++tap) {
    const float* const from = kernel + tap * size;
    float* const to = out + (kTaps - 1 - tap) * size;
    for (int64_t c = 0; c < channels; c += 4) {
      for (int64_t f = 0; f < filters; f += 4) {
        const float* const block = from + c * filters + f;
        __m128 a = _mm_loadu_ps(block);
        __m128 b = _mm_loadu_ps(block + filters);
        __m128 d = _mm_loadu_ps(block + 2 * filters);
        __m128 e = _mm_loadu_ps(block + 3 * filters);
        _MM_TRANSPOSE4_PS(a, b, d, e);
        float* const turned = to + f * channels + c;
        _mm_storeu_ps(turned, a);
        _mm_storeu_ps(turned + channels, b);
        _mm_storeu_ps(turned + 2 * channels, d);
        _mm_storeu_ps(turned + 3 * channels, e);
      }
    }
  }
}

PARASOL_AVX512 void MultiplyByKernel(const Tiling& tiling,
                                     const TileBlock& block,
                                     const float* pixels, const float* kernel,
                                     const Fetch& to_read,
                                     const Fetch& to_write, float* out) {
  const int64_t channels = tiling.channels;
  const int64_t filters = tiling.filters;
  const int64_t stride = block.stride();
  for (int64_t position = 0; position < kPositions; ++position) {
    FetchAt<kToRead>(to_read, position);
    FetchAt<kToWrite>(to_write, position);
    float* to = out;
    int64_t f = 0;
    for (; f + kWide <= filters; f += kWide, to += kFilterVectors * stride) {
      for (int64_t t = 0; t < block.size(); t += kTileGroup) {
        MultiplyGroup<kFilterVectors>(pixels + t * kTileStride, stride,
                                      channels, kernel + f * channels,
                                      to + t * kTileStride);
      }
    }
    if (f < filters) {
      for (int64_t t = 0; t < block.size(); t += kTileGroup) {
        MultiplyGroup<1>(pixels + t * kTileStride, stride, channels,
                         kernel + f * channels, to + t * kTileStride);
      }
    }
    pixels += kLanes;
    out += kLanes;
    kernel += channels * filters;
  }
}

PARASOL_AVX512 void AddProducts(const Tiling& tiling, const TileBlock& block,
                                const float* pixels, const float* gradients,
                                const Fetch& of_pixels,
                                const Fetch& of_gradients, float* sums) {
  const int64_t channels = tiling.channels;
  const int64_t filters = tiling.filters;
  const int64_t stride = block.stride();
  constexpr int64_t kHalf = kLanes / 2;
  for (int64_t position = 0; position < kPositions; ++position) {
    FetchAt<kToRead>(of_pixels, position);
    FetchAt<kToRead>(of_gradients, position);
    for (int64_t c = 0; c < channels; c += kLanes) {
      const float* const from = pixels + c / kLanes * stride;
      const float* of_filters = gradients;
      float* const to = sums + c * kLanes;
      int64_t f = 0;
      for (; f + kWide <= filters; f += kWide) {
        for (int64_t half = 0; half < kLanes; half += kHalf) {
          AddProductsOf<kHalf, kFilterVectors>(
              from + half, of_filters, block, channels,
              to + f * channels + half * kLanes);
        }
        of_filters += kFilterVectors * stride;
      }
      if (f < filters) {
        AddProductsOf<kLanes, 1>(from, of_filters, block, channels,
                                 to + f * channels);
      }
    }
    pixels += kLanes;
    gradients += kLanes;
    sums += channels * filters;
  }
}

PARASOL_AVX512 void WriteKernelGradient(const float* sums, int64_t channels,
                                        int64_t filters, float* dkernel) {
  const int64_t size = channels * filters;
  for (int64_t f = 0; f < filters; f += kLanes) {
    for (int64_t c = 0; c < channels; ++c) {
      const float* const from = sums + f * channels + c * kLanes;
      float* const to = dkernel + c * filters + f;
      TapColumn columns[kSide];
#pragma GCC unroll 4
      for (int j = 0; j < kSide; ++j) {
        columns[j] = TransformBack(Load(from + j * size),
                                   Load(from + (kSide + j) * size),
                                   Load(from + (2 * kSide + j) * size),
                                   Load(from + (3 * kSide + j) * size));
      }
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) {
        const TapColumn row = TransformBack(columns[0].at[i], columns[1].at[i],
                                            columns[2].at[i], columns[3].at[i]);
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j) {
          Store(to + (i * 3 + j) * size, row.at[j]);
        }
      }
    }
  }
}

}  // namespace parasol::cpu::winograd

#endif  // defined(__x86_64__)

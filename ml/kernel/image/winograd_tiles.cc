#include "ml/kernel/image/winograd_tiles.h"

#if defined(__x86_64__)

#include <algorithm>

#include "ml/kernel/image/winograd_vector.h"

namespace parasol::cpu::winograd {
namespace {

// Vectors of a column or row of a tile's 4 × 4 pixels or positions.
constexpr int kSide = 4;

// Tiles of one row, side by side: the first is number `first` of its block.
struct TileRun {
  int64_t example, row, column, count, first;
};

// The runs of a block.
class TileRuns {
 public:
  TileRuns(const Tiling& tiling, const TileBlock& block)
      : rows_(tiling.height.tiles()),
        columns_(tiling.width.tiles()),
        size_(block.size()),
        run_{.example = block.begin / columns_ / rows_,
             .row = block.begin / columns_ % rows_,
             .column = block.begin % columns_,
             .count = std::min(columns_ - block.begin % columns_, size_),
             .first = 0} {}

  bool done() const { return run_.first == size_; }
  const TileRun& run() const { return run_; }

  void Advance() {
    run_.first += run_.count;
    run_.column = 0;
    run_.count = std::min(columns_, size_ - run_.first);
    if (++run_.row < rows_) return;
    run_.row = 0;
    ++run_.example;
  }

 private:
  const int64_t rows_;
  const int64_t columns_;
  const int64_t size_;
  TileRun run_;
};

// The four rows of pixels that a row of tiles is computed from.
struct PixelRows {
  const float* row[kSide];  // any row for one of padding
  __mmask16 mask[kSide];    // none for a row of padding
  int64_t channels;         // floats from a pixel to the next one
};

PixelRows RowsOf(const Tiling& tiling, const TileRun& run, const float* x) {
  PixelRows rows;
  const TileAxis& height = tiling.height;
  rows.channels = tiling.channels;
  const int64_t row_size = tiling.width.input * tiling.channels;
  const float* const image = x + run.example * height.input * row_size;
  const int64_t first = 2 * run.row - height.before;
  for (int64_t i = 0; i < kSide; ++i) {
    const bool inside = first + i >= 0 && first + i < height.input;
    rows.row[i] = image + (inside ? (first + i) * row_size : 0);
    rows.mask[i] = inside ? 0xffff : 0;
  }
  return rows;
}

// Bᵀ · a column of four pixels.
struct Column {
  Vector at[kSide];
};

PARASOL_AVX512_INLINE Column ColumnAt(const PixelRows& rows, int64_t x) {
  const int64_t offset = x * rows.channels;
  Vector d[kSide];
#pragma GCC unroll 4
  for (int i = 0; i < kSide; ++i) {
    d[i] = _mm512_maskz_loadu_ps(rows.mask[i], rows.row[i] + offset);
  }
  return {{d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]}};
}

PARASOL_AVX512_INLINE Column ColumnOrPadding(const PixelRows& rows, int64_t x,
                                             int64_t width) {
  if (x >= 0 && x < width) return ColumnAt(rows, x);
  return {{Zero(), Zero(), Zero(), Zero()}};
}

PARASOL_AVX512_INLINE void StoreTile(const Column& a, const Column& b,
                                     const Column& c, const Column& d,
                                     float* out) {
#pragma GCC unroll 4
  for (int i = 0; i < kSide; ++i) {
    float* const to = out + i * kSide * kLanes;
    Store(to, a.at[i] - c.at[i]);
    Store(to + kLanes, b.at[i] + c.at[i]);
    Store(to + 2 * kLanes, c.at[i] - b.at[i]);
    Store(to + 3 * kLanes, b.at[i] - d.at[i]);
  }
}

// The first of `count` tiles begins at pixel `x`, which may be padding. Two
// columns of a tile are the next one's too.
PARASOL_AVX512_INLINE void TransformRun(const PixelRows& rows, int64_t x,
                                        int64_t width, int64_t count,
                                        float* out) {
  Column a = ColumnOrPadding(rows, x, width);
  Column b = ColumnOrPadding(rows, x + 1, width);
  const int64_t whole =
      std::clamp<int64_t>((width - x - kSide + 2) / 2, 0, count);
  for (int64_t t = 0; t < whole; ++t, x += 2, out += kTileStride) {
    const Column c = ColumnAt(rows, x + 2);
    const Column d = ColumnAt(rows, x + 3);
    StoreTile(a, b, c, d, out);
    a = c;
    b = d;
  }
  for (int64_t t = whole; t < count; ++t, x += 2, out += kTileStride) {
    const Column c = ColumnOrPadding(rows, x + 2, width);
    const Column d = ColumnOrPadding(rows, x + 3, width);
    StoreTile(a, b, c, d, out);
    a = c;
    b = d;
  }
}

// Tiles side by side in an array [examples, height, width, filters].
struct OutputTiles {
  int64_t row_size;  // floats from a pixel to the one below it
  int64_t filters;   // floats from a pixel to the next one
  int64_t columns;   // pixels from the first tile's to the end of the row
  int64_t count;     // tiles
};

OutputTiles OutputTilesOf(const Tiling& tiling, const TileRun& run) {
  return {.row_size = tiling.width.output * tiling.filters,
          .filters = tiling.filters,
          .columns = tiling.width.output - 2 * run.column,
          .count = run.count};
}

int64_t OutputOffset(const Tiling& tiling, const TileRun& run) {
  return ((run.example * tiling.height.output + 2 * run.row) *
              tiling.width.output +
          2 * run.column) *
         tiling.filters;
}

bool HasTwoRows(const Tiling& tiling, const TileRun& run) {
  return 2 * run.row + 1 < tiling.height.output;
}

template <bool kTwoRows>
PARASOL_AVX512_INLINE void TransformGradientRun(OutputTiles tiles,
                                                const float* dy, float* out) {
  for (; tiles.count > 0; --tiles.count, dy += 2 * tiles.filters,
                          out += kTileStride, tiles.columns -= 2) {
    const bool two_columns = tiles.columns > 1;
    const Vector a = Load(dy);
    const Vector b = two_columns ? Load(dy + tiles.filters) : Zero();
    const Vector c = kTwoRows ? Load(dy + tiles.row_size) : Zero();
    const Vector d = kTwoRows && two_columns
                         ? Load(dy + tiles.row_size + tiles.filters)
                         : Zero();
    const Vector left[kSide] = {a, a + c, a - c, Zero() - c};
    const Vector right[kSide] = {b, b + d, b - d, Zero() - d};
#pragma GCC unroll 4
    for (int i = 0; i < kSide; ++i) {
      float* const to = out + i * kSide * kLanes;
      Store(to, left[i]);
      Store(to + kLanes, left[i] + right[i]);
      Store(to + 2 * kLanes, left[i] - right[i]);
      Store(to + 3 * kLanes, Zero() - right[i]);
    }
  }
}

// Keeps NaN: the maximum is the second operand then.
template <bool kRelu>
PARASOL_AVX512_INLINE Vector Finish(Vector value, Vector bias) {
  const Vector sum = value + bias;
  return kRelu ? _mm512_max_ps(Zero(), sum) : sum;
}

template <bool kTwoRows, bool kRelu>
PARASOL_AVX512_INLINE void WriteRun(OutputTiles tiles, const float* sums,
                                    Vector bias, float* y) {
  for (; tiles.count > 0; --tiles.count, sums += kTileStride,
                          y += 2 * tiles.filters, tiles.columns -= 2) {
    Vector upper[kSide], lower[kSide];
#pragma GCC unroll 4
    for (int i = 0; i < kSide; ++i) {
      const float* const from = sums + i * kLanes;
      const Vector a = Load(from);
      const Vector b = Load(from + kSide * kLanes);
      const Vector c = Load(from + 2 * kSide * kLanes);
      upper[i] = a + b + c;
      if (kTwoRows) lower[i] = b - c - Load(from + 3 * kSide * kLanes);
    }
    Store(y, Finish<kRelu>(upper[0] + upper[1] + upper[2], bias));
    if (kTwoRows) {
      Store(y + tiles.row_size,
            Finish<kRelu>(lower[0] + lower[1] + lower[2], bias));
    }
    if (tiles.columns == 1) continue;
    float* const right = y + tiles.filters;
    Store(right, Finish<kRelu>(upper[1] - upper[2] - upper[3], bias));
    if (kTwoRows) {
      Store(right + tiles.row_size,
            Finish<kRelu>(lower[1] - lower[2] - lower[3], bias));
    }
  }
}

template <bool kRelu>
PARASOL_AVX512 void WriteOutputsWith(const Tiling& tiling,
                                     const TileBlock& block, const float* sums,
                                     const float* bias, float* y) {
  for (TileRuns runs(tiling, block); !runs.done(); runs.Advance()) {
    const TileRun& run = runs.run();
    const OutputTiles tiles = OutputTilesOf(tiling, run);
    const float* from = sums + run.first * kTileStride;
    float* const to = y + OutputOffset(tiling, run);
    const bool two_rows = HasTwoRows(tiling, run);
    for (int64_t f = 0; f < tiling.filters; f += kLanes) {
      const Vector added = bias == nullptr ? Zero() : Load(bias + f);
      if (two_rows) {
        WriteRun<true, kRelu>(tiles, from, added, to + f);
      } else {
        WriteRun<false, kRelu>(tiles, from, added, to + f);
      }
      from += block.stride();
    }
  }
}

}  // namespace

Fetch PixelsBelow(const Tiling& tiling, const TileBlock& block,
                  const float* x) {
  const TileRun run = TileRuns(tiling, block).run();
  const int64_t row = run.example * tiling.height.input + 2 * run.row -
                      tiling.height.before + kSide;
  return {
      .from = x + (row * tiling.width.input + 4 * run.column) * tiling.channels,
      .lines = block.size() * 4 * tiling.channels / kLanes};
}

Fetch OutputsBelow(const Tiling& tiling, const TileBlock& block,
                   const float* y) {
  const TileRun run = TileRuns(tiling, block).run();
  const int64_t row = run.example * tiling.height.output + 2 * run.row + 2;
  return {
      .from = y + (row * tiling.width.output + 4 * run.column) * tiling.filters,
      .lines = block.size() * 4 * tiling.filters / kLanes};
}

PARASOL_AVX512 void TransformPixels(const Tiling& tiling,
                                    const TileBlock& block, const float* x,
                                    float* out) {
  for (TileRuns runs(tiling, block); !runs.done(); runs.Advance()) {
    const TileRun& run = runs.run();
    PixelRows rows = RowsOf(tiling, run, x);
    float* to = out + run.first * kTileStride;
    for (int64_t c = 0; c < tiling.channels; c += kLanes) {
      TransformRun(rows, 2 * run.column - tiling.width.before,
                   tiling.width.input, run.count, to);
      for (const float*& row : rows.row) row += kLanes;
      to += block.stride();
    }
  }
}

PARASOL_AVX512 void TransformGradients(const Tiling& tiling,
                                       const TileBlock& block, const float* dy,
                                       float* out) {
  for (TileRuns runs(tiling, block); !runs.done(); runs.Advance()) {
    const TileRun& run = runs.run();
    const OutputTiles tiles = OutputTilesOf(tiling, run);
    const float* const from = dy + OutputOffset(tiling, run);
    float* to = out + run.first * kTileStride;
    const bool two_rows = HasTwoRows(tiling, run);
    for (int64_t f = 0; f < tiling.filters; f += kLanes) {
      if (two_rows) {
        TransformGradientRun<true>(tiles, from + f, to);
      } else {
        TransformGradientRun<false>(tiles, from + f, to);
      }
      to += block.stride();
    }
  }
}

void WriteOutputs(const Tiling& tiling, const TileBlock& block,
                  const float* sums, const float* bias, Epilogue epilogue,
                  float* y) {
  if (epilogue == Epilogue::kRelu) {
    WriteOutputsWith<true>(tiling, block, sums, bias, y);
  } else {
    WriteOutputsWith<false>(tiling, block, sums, bias, y);
  }
}

}  // namespace parasol::cpu::winograd

#endif  // defined(__x86_64__)

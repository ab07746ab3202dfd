#ifndef PARASOL_ML_KERNEL_IMAGE_WINDOW_PRODUCTS_H_
#define PARASOL_ML_KERNEL_IMAGE_WINDOW_PRODUCTS_H_

#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/device/cuda_pack.h"

// Products of matrices of which one is gathered from images, window by window,
// while it is multiplied: the passes of a convolution. Images have elements of
// type T; factors and sums are float32. A block computes a tile of the product
// from tiles of both factors in shared memory, and reads the next ones
// meanwhile. Each sum has the order of its terms, so its bits do not depend on
// the tiles' size. Only for .cu files.
namespace parasol::cuda {

// One axis of a WindowMatrix.
struct GatherAxis {
  int input;   // pixels of an image
  int output;  // rows of the matrix for an image
  int window;
  int stride;
  int before;  // pixels of padding
};

// The windows of images [examples, height.input, width.input, depth] as a
// matrix: a row for each of [examples, height.output, width.output], a column
// for each of [height.window, width.window, depth]. `images` is aligned for a
// pack if depth is a multiple of its width.
template <typename T>
struct WindowMatrix {
  const T* images;
  GatherAxis height;
  GatherAxis width;
  int depth;
  int rows;
  int columns;
};

// A position along one of the matrix's axes, as three digits. They are counted
// up, because divisions for each element would cost more than its products.
struct Digits {
  int high;
  int middle;
  int low;

  __device__ Digits(int index, int middle_size, int low_size)
      : high(index / low_size / middle_size),
        middle(index / low_size % middle_size),
        low(index % low_size) {}
  __device__ void Add(int step, int middle_size, int low_size) {
    low += step;
    while (low >= low_size) {
      low -= low_size;
      if (++middle == middle_size) {
        middle = 0;
        ++high;
      }
    }
  }
};

// Sets `pixel` to the one that window `window` has at position `k`; returns
// false for padding. With kBackward it is the other way round: `pixel` is set
// to the window that has the pixel `window` at position `k`, if there is one.
template <bool kBackward>
__device__ inline bool PixelAt(const GatherAxis& axis, int window, int k,
                               int& pixel) {
  if (kBackward) {
    const int start = window + axis.before - k;
    if (axis.stride == 1) {  // a division would cost more than the product
      pixel = start;
      return start >= 0 && start < axis.input;
    }
    pixel = start / axis.stride;
    return start >= 0 && pixel * axis.stride == start && pixel < axis.input;
  }
  pixel = window * axis.stride + k - axis.before;
  return pixel >= 0 && pixel < axis.input;
}

template <int kWidth, bool kBackward, typename T>
__device__ inline Pack<kWidth> LoadWindow(const WindowMatrix<T>& m,
                                          const Digits& row,
                                          const Digits& column) {
  int y, x;
  if (PixelAt<kBackward>(m.height, row.middle, column.high, y) &&
      PixelAt<kBackward>(m.width, row.low, column.middle, x)) {
    const int64_t pixel =
        (int64_t{row.high} * m.height.input + y) * m.width.input + x;
    return Load<kWidth>(m.images + pixel * m.depth + column.low);
  }
  return {};
}

// The size of a block's tiles: kM x kN elements of the product, of which a
// thread computes kThreadM x kThreadN, from kK terms at a time.
template <int kMOfTile, int kNOfTile, int kKOfTile, int kMOfThread,
          int kNOfThread>
struct TileSize {
  static constexpr int kM = kMOfTile;
  static constexpr int kN = kNOfTile;
  static constexpr int kK = kKOfTile;
  static constexpr int kThreadM = kMOfThread;
  static constexpr int kThreadN = kNOfThread;
  static constexpr int kThreads = (kM / kThreadM) * (kN / kThreadN);
  // Room between rows of a tile keeps them apart in the banks.
  static constexpr int kMPitch = kM + 4;
  static constexpr int kNPitch = kN + 4;
};

// Reads tiles [kK, kM] of a transposed WindowMatrix: its rows are the
// product's, and the sums are over its columns.
template <typename T, typename Size, int kWidth, bool kBackward>
class WindowRows {
 public:
  static constexpr int kPacks = Size::kK / kWidth;  // packs of a row
  static constexpr int kStep = Size::kThreads / kPacks;
  static constexpr int kCount = Size::kM / kStep;
  static_assert(kStep * kPacks == Size::kThreads);
  static_assert(kCount * kStep == Size::kM);

  __device__ WindowRows(const WindowMatrix<T>& m, int first_row, int first)
      : m_(m),
        first_row_(first_row + static_cast<int>(threadIdx.x) / kPacks),
        k_(first + static_cast<int>(threadIdx.x) % kPacks * kWidth),
        column_(k_, m.width.window, m.depth) {}

  // Reads the next tile into registers; terms from `end` on are 0.
  __device__ void Fetch(int end) {
    Digits row(first_row_, m_.height.output, m_.width.output);
    for (int i = 0; i < kCount; ++i) {
      fetched_[i] = {};
      if (k_ < end && first_row_ + i * kStep < m_.rows) {
        fetched_[i] = LoadWindow<kWidth, kBackward>(m_, row, column_);
      }
      row.Add(kStep, m_.height.output, m_.width.output);
    }
    k_ += Size::kK;
    column_.Add(Size::kK, m_.width.window, m_.depth);
  }
  __device__ void Store(float (*tile)[Size::kMPitch]) const {
    const int k = static_cast<int>(threadIdx.x) % kPacks * kWidth;
    const int m = static_cast<int>(threadIdx.x) / kPacks;
    for (int i = 0; i < kCount; ++i) {
      for (int j = 0; j < kWidth; ++j) {
        tile[k + j][m + i * kStep] = fetched_[i].values[j];
      }
    }
  }

 private:
  const WindowMatrix<T>& m_;
  const int first_row_;
  int k_;
  Digits column_;
  Pack<kWidth> fetched_[kCount];
};

// Reads tiles [kK, kM] of a WindowMatrix: its columns are the product's rows,
// and the sums are over its rows.
template <typename T, typename Size, int kWidth>
class WindowColumns {
 public:
  static constexpr int kPacks = Size::kM / kWidth;  // packs of a row
  static constexpr int kStep = Size::kThreads / kPacks;
  static constexpr int kCount = Size::kK / kStep;
  static_assert(kStep * kPacks == Size::kThreads);
  static_assert(kCount * kStep == Size::kK);

  __device__ WindowColumns(const WindowMatrix<T>& m, int first_column,
                           int first)
      : m_(m),
        column_index_(first_column +
                      static_cast<int>(threadIdx.x) % kPacks * kWidth),
        row_index_(first + static_cast<int>(threadIdx.x) / kPacks),
        column_(column_index_, m.width.window, m.depth),
        row_(row_index_, m.height.output, m.width.output) {}

  __device__ void Fetch(int end) {
    for (int i = 0; i < kCount; ++i) {
      fetched_[i] = {};
      if (row_index_ < end && column_index_ < m_.columns) {
        fetched_[i] = LoadWindow<kWidth, false>(m_, row_, column_);
      }
      row_index_ += kStep;
      row_.Add(kStep, m_.height.output, m_.width.output);
    }
  }
  __device__ void Store(float (*tile)[Size::kMPitch]) const {
    const int m = static_cast<int>(threadIdx.x) % kPacks * kWidth;
    const int k = static_cast<int>(threadIdx.x) / kPacks;
    for (int i = 0; i < kCount; ++i) {
      *reinterpret_cast<Pack<kWidth>*>(&tile[k + i * kStep][m]) = fetched_[i];
    }
  }

 private:
  const WindowMatrix<T>& m_;
  const int column_index_;
  int row_index_;
  const Digits column_;
  Digits row_;
  Pack<kWidth> fetched_[kCount];
};

// A matrix [rows, columns], the product's right factor.
template <typename T>
struct RightMatrix {
  const T* data;
  int rows;
  int columns;
};

// Reads tiles [kK, kN] of a matrix.
template <typename T, typename Size, int kWidth>
class MatrixRows {
 public:
  static constexpr int kPacks = Size::kN / kWidth;
  static constexpr int kStep = Size::kThreads / kPacks;
  static constexpr int kCount = Size::kK / kStep;
  static_assert(kStep * kPacks == Size::kThreads);
  static_assert(kCount * kStep == Size::kK);

  __device__ MatrixRows(const RightMatrix<T>& m, int first_column, int first)
      : m_(m),
        column_(first_column + static_cast<int>(threadIdx.x) % kPacks * kWidth),
        row_(first + static_cast<int>(threadIdx.x) / kPacks) {}

  __device__ void Fetch(int end) {
    for (int i = 0; i < kCount; ++i) {
      fetched_[i] = {};
      if (row_ < end && column_ < m_.columns) {
        fetched_[i] =
            Load<kWidth>(m_.data + int64_t{row_} * m_.columns + column_);
      }
      row_ += kStep;
    }
  }
  __device__ void Store(float (*tile)[Size::kNPitch]) const {
    const int n = static_cast<int>(threadIdx.x) % kPacks * kWidth;
    const int k = static_cast<int>(threadIdx.x) / kPacks;
    for (int i = 0; i < kCount; ++i) {
      *reinterpret_cast<Pack<kWidth>*>(&tile[k + i * kStep][n]) = fetched_[i];
    }
  }

 private:
  const RightMatrix<T>& m_;
  const int column_;
  int row_;
  Pack<kWidth> fetched_[kCount];
};

// A convolution's kernel [positions, channels, filters] as a matrix [positions
// x filters, channels].
struct TurnedKernel {
  const float* data;
  int channels;
  int filters;
};

// Reads tiles [kK, kN] of a turned kernel.
template <typename Size, int kWidth>
class TurnedRows {
 public:
  static constexpr int kPacks = Size::kK / kWidth;  // packs of a column
  static constexpr int kStep = Size::kThreads / kPacks;
  static constexpr int kCount = Size::kN / kStep;
  static_assert(kStep * kPacks == Size::kThreads);
  static_assert(kCount * kStep == Size::kN);

  __device__ TurnedRows(const TurnedKernel& m, int first_column, int first)
      : m_(m),
        column_(first_column + static_cast<int>(threadIdx.x) / kPacks),
        k_(first + static_cast<int>(threadIdx.x) % kPacks * kWidth),
        position_(k_ / m.filters),
        filter_(k_ % m.filters) {}

  __device__ void Fetch(int end) {
    for (int i = 0; i < kCount; ++i) {
      const int column = column_ + i * kStep;
      fetched_[i] = {};
      if (k_ < end && column < m_.channels) {
        fetched_[i] = Load<kWidth>(
            m_.data + (int64_t{position_} * m_.channels + column) * m_.filters +
            filter_);
      }
    }
    k_ += Size::kK;
    filter_ += Size::kK;
    while (filter_ >= m_.filters) {
      filter_ -= m_.filters;
      ++position_;
    }
  }
  __device__ void Store(float (*tile)[Size::kNPitch]) const {
    const int k = static_cast<int>(threadIdx.x) % kPacks * kWidth;
    const int n = static_cast<int>(threadIdx.x) / kPacks;
    for (int i = 0; i < kCount; ++i) {
      for (int j = 0; j < kWidth; ++j) {
        tile[k + j][n + i * kStep] = fetched_[i].values[j];
      }
    }
  }

 private:
  const TurnedKernel& m_;
  const int column_;
  int k_;
  int position_;
  int filter_;
  Pack<kWidth> fetched_[kCount];
};

template <typename Size>
struct Tiles {
  alignas(16) float left[Size::kK][Size::kMPitch];
  alignas(16) float right[Size::kK][Size::kNPitch];
};

// Adds the products of the tiles' kK terms to the calling thread's elements.
template <typename Size>
__device__ inline void AddProducts(
    const Tiles<Size>& tiles, int m, int n,
    float (&sums)[Size::kThreadM][Size::kThreadN]) {
  for (int k = 0; k < Size::kK; ++k) {
    const auto left =
        *reinterpret_cast<const Pack<Size::kThreadM>*>(&tiles.left[k][m]);
    const auto right =
        *reinterpret_cast<const Pack<Size::kThreadN>*>(&tiles.right[k][n]);
    for (int i = 0; i < Size::kThreadM; ++i) {
      for (int j = 0; j < Size::kThreadN; ++j) {
        sums[i][j] += left.values[i] * right.values[j];
      }
    }
  }
}

// Computes the calling block's tile of a product, of the terms [first, end),
// and calls store(row, column, value) for each element, also behind the
// product's last row and column.
template <typename Size, typename Left, typename Right, typename LeftMatrix,
          typename RightFactor, typename Store>
__device__ inline void MultiplyTile(const LeftMatrix& left_matrix,
                                    const RightFactor& right_matrix, int rows,
                                    int first, int end, const Store& store) {
  __shared__ Tiles<Size> tiles;
  const int row_tiles = (rows + Size::kM - 1) / Size::kM;
  const int first_row = static_cast<int>(blockIdx.x) % row_tiles * Size::kM;
  const int first_column = static_cast<int>(blockIdx.x) / row_tiles * Size::kN;
  const int m = static_cast<int>(threadIdx.x) / (Size::kN / Size::kThreadN) *
                Size::kThreadM;
  const int n = static_cast<int>(threadIdx.x) % (Size::kN / Size::kThreadN) *
                Size::kThreadN;
  Left left(left_matrix, first_row, first);
  Right right(right_matrix, first_column, first);
  float sums[Size::kThreadM][Size::kThreadN] = {};
  left.Fetch(end);
  right.Fetch(end);
  for (int k = first; k < end; k += Size::kK) {
    left.Store(tiles.left);
    right.Store(tiles.right);
    __syncthreads();
    if (k + Size::kK < end) {
      left.Fetch(end);
      right.Fetch(end);
    }
    AddProducts<Size>(tiles, m, n, sums);
    __syncthreads();
  }
  for (int i = 0; i < Size::kThreadM; ++i) {
    for (int j = 0; j < Size::kThreadN; ++j) {
      store(first_row + m + i, first_column + n + j, sums[i][j]);
    }
  }
}

}  // namespace parasol::cuda

#endif  // PARASOL_ML_KERNEL_IMAGE_WINDOW_PRODUCTS_H_

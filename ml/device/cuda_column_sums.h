#ifndef PARASOL_ML_DEVICE_CUDA_COLUMN_SUMS_H_
#define PARASOL_ML_DEVICE_CUDA_COLUMN_SUMS_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/device/cuda_pack.h"
#include "ml/device/cuda_status.h"
#include "ml/device/matrix.h"

// Sums over the rows of a matrix, for each column, by as many blocks as a
// device can use. A block adds up a slice of the rows; a second kernel adds up
// the slices' sums. Only for .cu files.
namespace parasol::cuda {

// The division of a matrix [rows, columns] among blocks: into tiles of
// neighbouring columns, and slices of rows. The warps of a block read
// neighbouring elements, of several rows where there are few columns. The
// division, and so the order of each sum, depends on the matrix's size alone:
// the same bits every time, on every device.
struct ColumnTiles {
  static constexpr int kThreads = 512;
  // Fewest rows of a thread, so that its part is worth the second kernel.
  static constexpr int kRowsOfAThread = 8;
  // Slices that a large device needs where there are many columns, and where
  // there are few: blocks for four on each of its multiprocessors.
  static constexpr int kMaxSlices = 128;
  static constexpr int kMaxSlicesOfFew = 2 * kMaxSlices;
  static constexpr int kManyBlocks = 4 * kMaxSlices;

  ColumnTiles(int64_t rows, int64_t columns)
      : rows(rows),
        columns(columns),
        width(static_cast<int>(std::min<uint64_t>(
            kWarpSize, std::bit_ceil(static_cast<uint64_t>(columns))))),
        slices(SlicesOf(
            kRowsOfAThread,
            std::clamp(SlicesFor(kManyBlocks), kMaxSlices, kMaxSlicesOfFew))) {}

  // Returns the number of slices in which each thread has at least
  // `rows_of_a_thread` rows, at most `max`.
  int SlicesOf(int rows_of_a_thread, int max) const {
    const int64_t least = int64_t{rows_of_a_thread} * height();
    return static_cast<int>(
        std::clamp<int64_t>((rows + least - 1) / least, 1, max));
  }
  // Returns the number of slices that make `blocks` blocks, at least 1.
  int SlicesFor(int blocks) const {
    return static_cast<int>(std::max<int64_t>(blocks / Tiles(), 1));
  }
  dim3 Blocks(int slices) const { return dim3(Tiles(), slices); }
  dim3 Threads() const { return dim3(width, height()); }
  int height() const { return kThreads / width; }
  int64_t Tiles() const { return (columns + width - 1) / width; }

  // Column of the calling thread.
  __device__ int64_t Column() const {
    return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  }
  // Calls body(row) for the calling thread's rows: every blockDim.y-th one of
  // its block's slice.
  template <typename Body>
  __device__ void ForEachRow(const Body& body) const {
    // Several rows at a time, so that their loads are under way together.
    constexpr int kTogether = 4;
    const int64_t end = rows * (blockIdx.y + 1) / gridDim.y;
    const int64_t step = blockDim.y;
    int64_t row = rows * blockIdx.y / gridDim.y + threadIdx.y;
    for (; row + (kTogether - 1) * step < end; row += kTogether * step) {
      for (int i = 0; i < kTogether; ++i) body(row + i * step);
    }
    for (; row < end; row += step) body(row);
  }

  int64_t rows;
  int64_t columns;
  int width;   // columns of a tile, a power of 2
  int slices;  // number of slices whose sums are added up
};

// Replaces each of a thread's values by its sum over the block's threads of the
// same column. All threads of the block call it, once in a kernel for each
// number of sums: a second call would need a barrier before it.
template <int kSums>
__device__ void SumOverThreads(double (&values)[kSums]) {
  __shared__ double partial[kSums][ColumnTiles::kThreads];
  const unsigned self = threadIdx.y * blockDim.x + threadIdx.x;
  for (int i = 0; i < kSums; ++i) partial[i][self] = values[i];
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y >= half) continue;
    for (int i = 0; i < kSums; ++i) {
      partial[i][self] += partial[i][self + half * blockDim.x];
    }
  }
  __syncthreads();
  for (int i = 0; i < kSums; ++i) values[i] = partial[i][threadIdx.x];
}

// Sums [slices, sums, columns] of a matrix's slices.
template <int kSums>
struct SliceSums {
  float* data;
  int64_t columns;
  __device__ float& At(int slice, int sum, int64_t column) const {
    return data[(int64_t{slice} * kSums + sum) * columns + column];
  }
  // Keeps the sums of the calling block's slice.
  __device__ void operator()(int64_t column,
                             const double (&sums)[kSums]) const {
    for (int i = 0; i < kSums; ++i) {
      At(static_cast<int>(blockIdx.y), i, column) = static_cast<float>(sums[i]);
    }
  }
  // Sets `total` to the calling thread's column's sums over all slices. All
  // threads of a block call it.
  __device__ void Total(const ColumnTiles& tiles,
                        double (&total)[kSums]) const {
    const int64_t column = tiles.Column();
    for (int i = 0; i < kSums; ++i) total[i] = 0;
    // The loads of all sums are under way together.
    for (int slice = threadIdx.y; column < columns && slice < tiles.slices;
         slice += blockDim.y) {
      for (int i = 0; i < kSums; ++i) total[i] += At(slice, i, column);
    }
    SumOverThreads(total);
  }
};

// Returns room on the device for the sums of `tiles`, until the next call.
template <int kSums>
absl::StatusOr<SliceSums<kSums>> NewSliceSums(CudaDevice& device,
                                              const ColumnTiles& tiles) {
  ASSIGN_OR_RETURN(float* const data,
                   device.Scratch(tiles.slices * kSums * tiles.columns));
  return SliceSums<kSums>{data, tiles.columns};
}

// Calls term(row, column, sums), which adds to `sums`, for the rows of a slice,
// then store(column, sums) for each column.
template <int kSums, typename Term, typename Store>
__global__ void SumSliceKernel(ColumnTiles tiles, Term term, Store store) {
  const int64_t column = tiles.Column();
  float sums[kSums] = {};
  if (column < tiles.columns) {
    tiles.ForEachRow([&](int64_t row) { term(row, column, sums); });
  }
  double total[kSums];
  for (int i = 0; i < kSums; ++i) total[i] = sums[i];
  SumOverThreads(total);
  if (threadIdx.y == 0 && column < tiles.columns) store(column, total);
}

template <int kSums, typename Store>
__global__ void FinishSumsKernel(ColumnTiles tiles, SliceSums<kSums> sums,
                                 Store store) {
  double total[kSums];
  sums.Total(tiles, total);
  const int64_t column = tiles.Column();
  if (threadIdx.y == 0 && column < tiles.columns) store(column, total);
}

// Launches what calls store(column, sums) for each column of a matrix [rows,
// columns], with the sums of all its rows: term(row, column, sums) adds a row's
// part to `sums`. `name` is the kernels' name in errors.
template <int kSums, typename Term, typename Store>
absl::Status SumRowsOf(Device& device, absl::string_view name, int64_t rows,
                       int64_t columns, const Term& term, const Store& store) {
  if (columns == 0) return absl::OkStatus();
  CudaDevice& cuda = static_cast<CudaDevice&>(device);
  ASSIGN_OR_RETURN(CUstream_st * stream, cuda.ComputeStream());
  const ColumnTiles tiles(rows, columns);
  if (tiles.slices == 1) {
    Launch(SumSliceKernel<kSums, Term, Store>, tiles.Blocks(1), tiles.Threads(),
           stream, tiles, term, store);
    return LaunchStatus(name);
  }
  ASSIGN_OR_RETURN(const SliceSums<kSums> sums,
                   NewSliceSums<kSums>(cuda, tiles));
  Launch(SumSliceKernel<kSums, Term, SliceSums<kSums>>,
         tiles.Blocks(tiles.slices), tiles.Threads(), stream, tiles, term,
         sums);
  RETURN_IF_ERROR(LaunchStatus(name));
  Launch(FinishSumsKernel<kSums, Store>, tiles.Blocks(1), tiles.Threads(),
         stream, tiles, sums, store);
  return LaunchStatus(name);
}

template <typename T>
struct TermOfMatrix {
  const T* data;
  int64_t columns;
  __device__ void operator()(int64_t row, int64_t column,
                             float (&sums)[1]) const {
    sums[0] += ToFloat(data[row * columns + column]);
  }
};

struct StoreSum {
  float* sum;
  __device__ void operator()(int64_t column, const double (&sums)[1]) const {
    sum[column] = static_cast<float>(sums[0]);
  }
};

// Computes sum[n] = Σ over rows of m[row, n], of a matrix [rows, columns].
inline absl::Status SumRowsOf(Device& device, absl::string_view name,
                              ConstElements m, int64_t rows, int64_t columns,
                              float* sum) {
  return WithEdgeType(m.type(), [&]<typename T>() {
    return SumRowsOf<1>(device, name, rows, columns,
                        TermOfMatrix<T>{m.As<T>(), columns}, StoreSum{sum});
  });
}

// Computes the sum of a column of few rows in their order.
struct SumOfFewRows {
  MatrixView m;
  float* sum;
  __device__ void operator()(int64_t column) const {
    double total = 0;
    for (int64_t row = 0; row < m.rows; ++row) {
      total += m.data[row * m.columns + column];
    }
    sum[column] = static_cast<float>(total);
  }
};

// Computes the same as SumRowsOf() in one kernel, without scratch memory.
inline absl::Status SumFewRowsOf(Device& device, absl::string_view name,
                                 MatrixView m, float* sum) {
  // A block of threads for the rows of a column would be mostly idle.
  constexpr int64_t kVeryFew = 16;
  if (m.rows <= kVeryFew) {
    return ForEach(device, name, m.columns, SumOfFewRows{m, sum});
  }
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  const ColumnTiles tiles(m.rows, m.columns);
  Launch(SumSliceKernel<1, TermOfMatrix<float>, StoreSum>, tiles.Blocks(1),
         tiles.Threads(), stream, tiles, TermOfMatrix<float>{m.data, m.columns},
         StoreSum{sum});
  return LaunchStatus(name);
}

}  // namespace parasol::cuda

#endif  // PARASOL_ML_DEVICE_CUDA_COLUMN_SUMS_H_

#include <cstdint>
#include <memory>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/device/cuda_pack.h"
#include "ml/kernel/image/pooling.h"

namespace parasol::cuda {
namespace {

using Kind = PoolingShape::Kind;

// The part of an image that one window covers: rows and columns [first, end).
struct Cover {
  __device__ Cover(const PoolingShape& s, int64_t i, int64_t j) {
    const int64_t row = i * s.height.stride - s.height.before;
    const int64_t column = j * s.width.stride - s.width.before;
    first_row = row < 0 ? 0 : row;
    first_column = column < 0 ? 0 : column;
    end_row = min(row + s.height.window, s.height.input);
    end_column = min(column + s.width.window, s.width.input);
  }

  __device__ int64_t pixels() const {
    return (end_row - first_row) * (end_column - first_column);
  }

  int64_t first_row, end_row, first_column, end_column;
};

// An element of x or y, from its position.
struct Element {
  __device__ Element(int64_t position, int64_t rows, int64_t columns,
                     int64_t channels) {
    // Divisions of 64 bits cost several times as much.
    if (position <= UINT32_MAX) {
      Divide(static_cast<uint32_t>(position), static_cast<uint32_t>(rows),
             static_cast<uint32_t>(columns), static_cast<uint32_t>(channels));
    } else {
      Divide(position, rows, columns, channels);
    }
  }

  int64_t n, row, column, c;

 private:
  template <typename Index>
  __device__ void Divide(Index position, Index rows, Index columns,
                         Index channels) {
    c = position % channels;
    position /= channels;
    column = position % columns;
    position /= columns;
    row = position % rows;
    n = position / rows;
  }
};

// The windows of one axis that cover a pixel: [first, end).
struct Covering {
  __device__ Covering(const WindowAxis& axis, int64_t pixel) {
    const int last = static_cast<int>(pixel + axis.before);
    const int stride = static_cast<int>(axis.stride);
    const int window = static_cast<int>(axis.window);
    first = last < window ? 0 : (last - window) / stride + 1;
    end = min(last / stride + 1, static_cast<int>(axis.output));
  }

  int first, end;
};

// Calls each(row, column, place in y) for the windows that cover the pixel `e`,
// the last one first.
template <typename Each>
__device__ void ForEachCovering(const PoolingShape& s, const Element& e,
                                const Each& each) {
  const Covering rows(s.height, e.row);
  const Covering columns(s.width, e.column);
  for (int row = rows.end - 1; row >= rows.first; --row) {
    for (int column = columns.end - 1; column >= columns.first; --column) {
      each(row, column,
           ((e.n * s.height.output + row) * s.width.output + column) *
                   s.channels +
               e.c);
    }
  }
}

__device__ int64_t Position(const PoolingShape& s, int64_t n, int64_t row,
                            int64_t column, int64_t c) {
  return ((n * s.height.input + row) * s.width.input + column) * s.channels + c;
}

template <typename T, Kind kKind>
struct PooledOf {
  PoolingShape s;
  const T* x;
  T* y;
  __device__ void operator()(int64_t i) const {
    const Element e(i, s.height.output, s.width.output, s.channels);
    const Cover cover(s, e.row, e.column);
    float result = kKind == Kind::kMax ? -INFINITY : 0;
    for (int64_t row = cover.first_row; row < cover.end_row; ++row) {
      for (int64_t column = cover.first_column; column < cover.end_column;
           ++column) {
        const float value = ToFloat(x[Position(s, e.n, row, column, e.c)]);
        if (kKind == Kind::kAverage) {
          result += value;
        } else if (value > result || value != value) {
          result = value;
        }
      }
    }
    y[i] = Rounded<T>(kKind == Kind::kMax ? result : result / cover.pixels());
  }
};

// Returns true if the pixel `e` of value `own` is the first of a window's
// pixels that is the largest, or NaN.
template <typename T>
__device__ bool IsFirstLargest(const PoolingShape& s, const T* x, float own,
                               float largest, const Cover& cover,
                               const Element& e) {
  if (own != largest && own == own) return false;
  for (int64_t row = cover.first_row; row <= e.row; ++row) {
    for (int64_t column = cover.first_column; column < cover.end_column;
         ++column) {
      if (row == e.row && column == e.column) return true;
      const float value = ToFloat(x[Position(s, e.n, row, column, e.c)]);
      if (value == largest || value != value) return false;
    }
  }
  return false;
}

// Each thread adds up for one pixel what comes from the windows that cover it,
// always in the same order.
template <typename T, Kind kKind>
struct GradientOf {
  PoolingShape s;
  const T* x;
  const T* y;
  const T* dy;
  T* dx;
  __device__ void operator()(int64_t i) const {
    const Element e(i, s.height.input, s.width.input, s.channels);
    float sum = 0;
    ForEachCovering(s, e, [&](int row, int column, int64_t out) {
      const Cover cover(s, row, column);
      if (kKind == Kind::kAverage) {
        sum += ToFloat(dy[out]) / cover.pixels();
      } else if (IsFirstLargest(s, x, ToFloat(x[i]), ToFloat(y[out]), cover,
                                e)) {
        sum += ToFloat(dy[out]);
      }
    });
    dx[i] = Rounded<T>(sum);
  }
};

// Finds the place in each window of its first pixel that is the largest.
template <typename T>
struct FirstLargestOf {
  PoolingShape s;
  const T* x;
  const T* y;
  int* place;
  __device__ void operator()(int64_t i) const {
    const Element e(i, s.height.output, s.width.output, s.channels);
    const Cover cover(s, e.row, e.column);
    const int64_t first = e.row * s.height.stride - s.height.before;
    const int64_t first_column = e.column * s.width.stride - s.width.before;
    const float largest = ToFloat(y[i]);
    for (int64_t row = cover.first_row; row < cover.end_row; ++row) {
      for (int64_t column = cover.first_column; column < cover.end_column;
           ++column) {
        const float value = ToFloat(x[Position(s, e.n, row, column, e.c)]);
        if (value != largest && value == value) continue;
        place[i] = static_cast<int>((row - first) * s.width.window + column -
                                    first_column);
        return;
      }
    }
    place[i] = -1;
  }
};

// Adds up what GradientOf<kMax> does, from the places that FirstLargestOf
// found.
template <typename T>
struct GradientAtPlaces {
  PoolingShape s;
  const int* place;
  const T* dy;
  T* dx;
  __device__ void operator()(int64_t i) const {
    const Element e(i, s.height.input, s.width.input, s.channels);
    float sum = 0;
    ForEachCovering(s, e, [&](int row, int column, int64_t out) {
      const int64_t k = e.row + s.height.before - row * s.height.stride;
      const int64_t l = e.column + s.width.before - column * s.width.stride;
      const float gradient =
          ToFloat(dy[out]);  // read in any case, beside the place
      if (place[out] == k * s.width.window + l) sum += gradient;
    });
    dx[i] = Rounded<T>(sum);
  }
};

class CudaPooling : public Pooling {
 public:
  CudaPooling(Device& device, const PoolingShape& shape)
      : device_(device), shape_(shape) {}

  absl::Status Forward(ConstElements x, Elements y) override {
    return WithEdgeType(x.type(), [&]<typename T>() {
      return shape_.kind == Kind::kMax
                 ? Forward<T, Kind::kMax>(x.As<T>(), y.As<T>())
                 : Forward<T, Kind::kAverage>(x.As<T>(), y.As<T>());
    });
  }

  absl::Status InputGradient(ConstElements x, ConstElements y, ConstElements dy,
                             Elements dx) override {
    return WithEdgeType(x.type(), [&]<typename T>() {
      return InputGradient(x.As<T>(), y.As<T>(), dy.As<T>(), dx.As<T>());
    });
  }

 private:
  template <typename T, Kind kKind>
  absl::Status Forward(const T* x, T* y) {
    return ForEach(device_, "pooling", shape_.y_size(),
                   PooledOf<T, kKind>{shape_, x, y});
  }

  template <typename T>
  absl::Status InputGradient(const T* x, const T* y, const T* dy, T* dx) {
    if (shape_.kind == Kind::kAverage) {
      return InputGradient<T, Kind::kAverage>(x, y, dy, dx);
    }
    const bool overlap = shape_.height.window > shape_.height.stride ||
                         shape_.width.window > shape_.width.stride;
    return overlap ? OverlappingGradient(x, y, dy, dx)
                   : InputGradient<T, Kind::kMax>(x, y, dy, dx);
  }

  template <typename T, Kind kKind>
  absl::Status InputGradient(const T* x, const T* y, const T* dy, T* dx) {
    return ForEach(device_, "gradient of pooling", shape_.x_size(),
                   GradientOf<T, kKind>{shape_, x, y, dy, dx});
  }

  // Several pixels would search each window.
  template <typename T>
  absl::Status OverlappingGradient(const T* x, const T* y, const T* dy, T* dx) {
    static_assert(sizeof(int) == sizeof(float));
    ASSIGN_OR_RETURN(
        float* const scratch,
        static_cast<CudaDevice&>(device_).Scratch(shape_.y_size()));
    int* const place = reinterpret_cast<int*>(scratch);
    RETURN_IF_ERROR(ForEach(device_, "search of largest pixels",
                            shape_.y_size(),
                            FirstLargestOf<T>{shape_, x, y, place}));
    return ForEach(device_, "gradient of pooling", shape_.x_size(),
                   GradientAtPlaces<T>{shape_, place, dy, dx});
  }

  Device& device_;
  const PoolingShape shape_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Pooling>> NewPooling(Device& device,
                                                    const PoolingShape& shape) {
  return std::make_unique<CudaPooling>(device, shape);
}

}  // namespace parasol::cuda

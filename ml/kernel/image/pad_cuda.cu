#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/image/pad.h"

namespace parasol::cuda {
namespace {

// As plain arrays: std::array's functions are the host's.
struct Axes {
  explicit Axes(const PadShape& shape) : count(static_cast<int>(shape.axes)) {
    for (int i = 0; i < count; ++i) {
      input[i] = shape.input[i];
      before[i] = shape.before[i];
      output[i] = shape.before[i] + shape.input[i] + shape.after[i];
    }
  }

  // Returns the index in x of element `i` of y; -1 if it is padding.
  __device__ int64_t Source(int64_t i) const {
    int64_t source = 0;
    int64_t step = 1;
    for (int axis = count - 1; axis >= 0; --axis) {
      const int64_t index = i % output[axis] - before[axis];
      if (index < 0 || index >= input[axis]) return -1;
      source += index * step;
      step *= input[axis];
      i /= output[axis];
    }
    return source;
  }

  int count;
  int64_t input[PadShape::kMaxAxes];
  int64_t before[PadShape::kMaxAxes];
  int64_t output[PadShape::kMaxAxes];
};

template <typename T>
struct Padded {
  Axes axes;
  const T* x;
  T* y;
  __device__ void operator()(int64_t i) const {
    const int64_t source = axes.Source(i);
    y[i] = source < 0 ? T{} : x[source];
  }
};

template <typename T>
struct PaddedGradientOf {
  Axes axes;
  const T* dy;
  T* dx;
  __device__ void operator()(int64_t i) const {
    const int64_t source = axes.Source(i);
    if (source >= 0) dx[source] = dy[i];
  }
};

}  // namespace

absl::Status Pad(Device& device, const PadShape& shape, ConstElements x,
                 Elements y) {
  return WithEdgeType(x.type(), [&]<typename T>() {
    return ForEach(device, "padding", shape.y_size(),
                   Padded<T>{Axes(shape), x.As<T>(), y.As<T>()});
  });
}

absl::Status PadGradient(Device& device, const PadShape& shape,
                         ConstElements dy, Elements dx) {
  return WithEdgeType(dy.type(), [&]<typename T>() {
    return ForEach(device, "gradient of padding", shape.y_size(),
                   PaddedGradientOf<T>{Axes(shape), dy.As<T>(), dx.As<T>()});
  });
}

}  // namespace parasol::cuda

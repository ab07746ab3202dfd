#include <cstdint>

#include "ml/device/cuda_pack.h"
#include "ml/kernel/relu.h"

namespace parasol::cuda {
namespace {

template <typename T>
struct ReluOf {
  const T* x;
  T* y;
  template <int kWidth>
  __device__ void At(int64_t i) const {
    Pack<kWidth> values = Load<kWidth>(x + i);
    for (float& value : values.values) value = value < 0 ? 0 : value;
    Store(values, y + i);
  }
};

template <typename T>
struct GradientOf {
  const T* y;
  const T* dy;
  T* dx;
  template <int kWidth>
  __device__ void At(int64_t i) const {
    const Pack<kWidth> outputs = Load<kWidth>(y + i);
    Pack<kWidth> gradients = Load<kWidth>(dy + i);
    for (int j = 0; j < kWidth; ++j) {
      gradients.values[j] = outputs.values[j] > 0 ? gradients.values[j] : 0;
    }
    Store(gradients, dx + i);
  }
};

}  // namespace

absl::Status Relu(Device& device, ConstElements x, int64_t size, Elements y) {
  return WithEdgeType(x.type(), [&]<typename T>() {
    const ReluOf<T> relu = {x.As<T>(), y.As<T>()};
    return ForEachPack(device, "relu", size, IsPacked(0, relu.x, relu.y), relu);
  });
}

absl::Status ReluGradient(Device& device, ConstElements y, ConstElements dy,
                          int64_t size, Elements dx) {
  return WithEdgeType(y.type(), [&]<typename T>() {
    const GradientOf<T> gradient = {y.As<T>(), dy.As<T>(), dx.As<T>()};
    return ForEachPack(device, "gradient of relu", size,
                       IsPacked(0, gradient.y, gradient.dy, gradient.dx),
                       gradient);
  });
}

}  // namespace parasol::cuda

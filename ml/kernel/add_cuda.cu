#include <cstdint>

#include "ml/device/cuda_pack.h"
#include "ml/kernel/add.h"

namespace parasol::cuda {
namespace {

template <typename T>
struct SumOf {
  const T* a;
  const T* b;
  bool relu;
  T* y;
  template <int kWidth>
  __device__ void At(int64_t i) const {
    const Pack<kWidth> left = Load<kWidth>(a + i);
    const Pack<kWidth> right = Load<kWidth>(b + i);
    Pack<kWidth> sums;
    for (int j = 0; j < kWidth; ++j) {
      const float sum = left.values[j] + right.values[j];
      sums.values[j] = relu && sum < 0 ? 0 : sum;
    }
    Store(sums, y + i);
  }
};

}  // namespace

absl::Status Add(Device& device, ConstElements a, ConstElements b, int64_t size,
                 AddEpilogue epilogue, Elements y) {
  return WithEdgeType(y.type(), [&]<typename T>() {
    const SumOf<T> sum = {a.As<T>(), b.As<T>(), epilogue == AddEpilogue::kRelu,
                          y.As<T>()};
    return ForEachPack(device, "addition", size,
                       IsPacked(0, sum.a, sum.b, sum.y), sum);
  });
}

}  // namespace parasol::cuda

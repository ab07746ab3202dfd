#ifndef PARASOL_ML_DEVICE_CUDA_PACK_H_
#define PARASOL_ML_DEVICE_CUDA_PACK_H_

#include <cstdint>

// Neighbouring numbers that a thread reads or writes at once. Only for .cu
// files.
namespace parasol::cuda {

// The width of packs of float that are 16 bytes, as many as one access has.
inline constexpr int kPackWidth = 4;

template <int kWidth, typename T = float>
struct alignas(kWidth * sizeof(T)) Pack {
  T values[kWidth];
};

template <int kWidth, typename T>
__device__ inline Pack<kWidth, T> Load(const T* from) {
  return *reinterpret_cast<const Pack<kWidth, T>*>(from);
}

template <int kWidth, typename T>
__device__ inline void Store(const Pack<kWidth, T>& pack, T* to) {
  *reinterpret_cast<Pack<kWidth, T>*>(to) = pack;
}

// Returns true if all of `arrays`, in rows of `size` numbers, can be read in
// packs of kPackWidth. A null array is none.
template <typename... Arrays>
bool IsPacked(int64_t size, const Arrays*... arrays) {
  constexpr uintptr_t kBytes = sizeof(Pack<kPackWidth>);
  return size % kPackWidth == 0 &&
         ((reinterpret_cast<uintptr_t>(arrays) % kBytes == 0) && ...);
}

}  // namespace parasol::cuda

#endif  // PARASOL_ML_DEVICE_CUDA_PACK_H_

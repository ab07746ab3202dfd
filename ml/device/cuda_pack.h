#ifndef PARASOL_ML_DEVICE_CUDA_PACK_H_
#define PARASOL_ML_DEVICE_CUDA_PACK_H_

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ml/device/cuda_launch.h"
#include "ml/device/elements.h"

// Numbers of both types, and neighbouring ones that a thread reads or writes at
// once. All arithmetic is float's. Only for .cu files.
namespace parasol::cuda {

// The width of packs of float that are 16 bytes, as many as one access has.
inline constexpr int kPackWidth = 4;

template <int kWidth, typename T = float>
struct alignas(kWidth * sizeof(T)) Pack {
  T values[kWidth];
};

__device__ inline float ToFloat(float value) { return value; }
__device__ inline float ToFloat(Bfloat16 value) {
  return __bfloat162float(__ushort_as_bfloat16(value.bits));
}

// Rounds to the nearest T, of two equally near ones to the even one.
template <typename T>
__device__ inline T Rounded(float value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
  } else {
    return value;
  }
}

template <int kWidth, typename T>
__device__ inline Pack<kWidth> Load(const T* from) {
  const auto read = *reinterpret_cast<const Pack<kWidth, T>*>(from);
  if constexpr (std::is_same_v<T, float>) {
    return read;
  } else {
    Pack<kWidth> pack;
    for (int i = 0; i < kWidth; ++i) pack.values[i] = ToFloat(read.values[i]);
    return pack;
  }
}

template <int kWidth, typename T>
__device__ inline void Store(const Pack<kWidth>& pack, T* to) {
  Pack<kWidth, T> written;
  for (int i = 0; i < kWidth; ++i) {
    written.values[i] = Rounded<T>(pack.values[i]);
  }
  *reinterpret_cast<Pack<kWidth, T>*>(to) = written;
}

// Returns true if each of `arrays` is at a multiple of `bytes`. A null array
// is.
template <typename... Arrays>
bool AreAligned(size_t bytes, const Arrays*... arrays) {
  return ((reinterpret_cast<uintptr_t>(arrays) % bytes == 0) && ...);
}

// Returns true if all of `arrays`, in rows of `size` numbers, can be read in
// packs of kPackWidth. A null array is none.
template <typename... Arrays>
bool IsPacked(int64_t size, const Arrays*... arrays) {
  return size % kPackWidth == 0 &&
         (AreAligned(sizeof(Pack<kPackWidth, Arrays>), arrays) && ...);
}

// Calls function.At<width>(first) for the neighbours [first, first + width) of
// `size` numbers, pack by pack, and one by one behind the last pack.
template <typename Function>
struct InPacks {
  Function function;
  int64_t size;
  __device__ void operator()(int64_t pack) const {
    const int64_t first = pack * kPackWidth;
    if (first + kPackWidth <= size) {
      function.template At<kPackWidth>(first);
      return;
    }
    for (int64_t i = first; i < size; ++i) function.template At<1>(i);
  }
};

template <typename Function>
struct OneByOne {
  Function function;
  __device__ void operator()(int64_t i) const { function.template At<1>(i); }
};

// Launches that for `size` numbers, in packs if `packed`: all of the function's
// arrays are aligned for them. `name` is the kernel's name in errors.
template <typename Function>
absl::Status ForEachPack(CUstream_st* stream, absl::string_view name,
                         int64_t size, bool packed, const Function& function) {
  if (!packed) {
    return ForEach(stream, name, size, OneByOne<Function>{function});
  }
  return ForEach(stream, name, (size + kPackWidth - 1) / kPackWidth,
                 InPacks<Function>{function, size});
}

template <typename Function>
absl::Status ForEachPack(Device& device, absl::string_view name, int64_t size,
                         bool packed, const Function& function) {
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  return ForEachPack(stream, name, size, packed, function);
}

// to[i] = from[i], rounded if To holds less.
template <typename From, typename To>
struct ConversionOf {
  const From* from;
  To* to;
  template <int kWidth>
  __device__ void At(int64_t i) const {
    Store(Load<kWidth>(from + i), to + i);
  }
};

template <typename From, typename To>
absl::Status Convert(CUstream_st* stream, const From* from, int64_t size,
                     To* to) {
  return ForEachPack(stream, "conversion of elements", size,
                     IsPacked(0, from, to), ConversionOf<From, To>{from, to});
}

}  // namespace parasol::cuda

#endif  // PARASOL_ML_DEVICE_CUDA_PACK_H_

#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_CUDA_RUNTIME_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_CUDA_RUNTIME_H_

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

// CUDA's extensions of C++ as far as the project's kernels use them, as plain
// C++: a .cu file is compiled with `-x c++`.

#define __global__
#define __launch_bounds__(...)
#define __device__
#define __host__
// One block runs at a time, so its shared memory may be static. GCC puts the
// variables of function templates elsewhere: those are not poisoned.
#define __shared__ static __attribute__((section("cuda_on_host_shared")))

struct uint3 {
  unsigned int x, y, z;
};

struct dim3 {
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1)
      : x(x), y(y), z(z) {}
  unsigned int x, y, z;
};

struct uint4 {
  unsigned int x, y, z, w;
};
inline uint4 make_uint4(unsigned int x, unsigned int y, unsigned int z,
                        unsigned int w) {
  return {x, y, z, w};
}

// Position of the thread that runs.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

namespace cuda_on_host {

// Enqueues a grid whose threads each call `thread`. Sets CUDA's last error if
// CUDA would refuse it.
void LaunchGrid(dim3 grid, dim3 block, cudaStream_t stream,
                std::function<void()> thread);

// Begins, or ends, the checks of what the running thread reads and writes.
void SetChecked(bool is_checked);

// The kernel<<<grid, block, 0, stream>>>(arguments…) of CUDA.
template <typename... Parameters>
void Launch(void (*kernel)(Parameters...), dim3 grid, dim3 block,
            cudaStream_t stream,
            std::type_identity_t<Parameters>... arguments) {
  const auto thread = [=]() __attribute__((no_sanitize("thread"))) {
    SetChecked(true);
    kernel(arguments...);
    SetChecked(false);
  };
  LaunchGrid(grid, block, stream, thread);
}

// Point of the source at which a thread waits for others.
struct Place {
  const char* file;
  int line;
};

// The barrier of a block.
void Barrier(Place place);
// Returns the value of lane `source` of the warp, once all lanes in `mask` have
// called it.
uint64_t Shuffle(unsigned int mask, uint64_t value, unsigned int source,
                 Place place);
unsigned int Lane();
// A point at which another thread may run.
void MayYield();
// Checks an access of `bytes` bytes that other threads may make too.
void AtomicAccess(void* address, size_t bytes);

template <typename T>
T ShuffleOf(unsigned int mask, T value, unsigned int source, Place place) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = Shuffle(mask, bits, source, place);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace cuda_on_host

inline void __syncthreads(const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  cuda_on_host::Barrier({file, line});
}

template <typename T>
T __shfl_xor_sync(unsigned int mask, T value, int lanes, int width = 32,
                  const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  static_cast<void>(width);
  return cuda_on_host::ShuffleOf(mask, value, cuda_on_host::Lane() ^ lanes,
                                 {file, line});
}

// The threads of a grid run one at a time, so that the sum is plain C++.
template <typename T>
__attribute__((noinline, no_sanitize("thread"))) T atomicAdd(T* address,
                                                             T value) {
  cuda_on_host::AtomicAccess(address, sizeof(T));
  const T old = *address;
  *address = old + value;
  cuda_on_host::MayYield();
  return old;
}

// Returns the time in cycles: a million have passed since the last call.
long long clock64();

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline uint32_t __umulhi(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>((uint64_t{a} * b) >> 32);
}
inline float normcdff(float x) {
  return static_cast<float>(0.5 * std::erfc(-double{x} * M_SQRT1_2));
}
template <typename T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
T max(T a, T b) {
  return a < b ? b : a;
}

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_CUDA_RUNTIME_H_

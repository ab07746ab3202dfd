// The functions that GCC calls in code that it compiles with
// -fsanitize=thread. This library itself is not compiled so.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "third_party/cuda_on_host/check.h"

using cuda_on_host::Access;
using cuda_on_host::CheckAccess;

#if !PARASOL_SANITIZER

#define CUDA_ON_HOST_ACCESS(size)                               \
  extern "C" void __tsan_read##size(void* address) {            \
    CheckAccess(address, size, Access::kRead);                  \
  }                                                             \
  extern "C" void __tsan_write##size(void* address) {           \
    CheckAccess(address, size, Access::kWrite);                 \
  }                                                             \
  extern "C" void __tsan_unaligned_read##size(void* address) {  \
    CheckAccess(address, size, Access::kRead);                  \
  }                                                             \
  extern "C" void __tsan_unaligned_write##size(void* address) { \
    CheckAccess(address, size, Access::kWrite);                 \
  }
CUDA_ON_HOST_ACCESS(1)
CUDA_ON_HOST_ACCESS(2)
CUDA_ON_HOST_ACCESS(4)
CUDA_ON_HOST_ACCESS(8)
CUDA_ON_HOST_ACCESS(16)

extern "C" void __tsan_read_range(void* address, size_t bytes) {
  CheckAccess(address, bytes, Access::kRead);
}
extern "C" void __tsan_write_range(void* address, size_t bytes) {
  CheckAccess(address, bytes, Access::kWrite);
}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_vptr_update(void*, void*) {}
extern "C" void __tsan_vptr_read(void*) {}
extern "C" void __tsan_atomic_thread_fence(int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
extern "C" void __tsan_atomic_signal_fence(int) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

// The host's atomic operations.
#define CUDA_ON_HOST_FETCH(bits, name)                               \
  extern "C" uint##bits##_t __tsan_atomic##bits##_##name(            \
      volatile uint##bits##_t* address, uint##bits##_t value, int) { \
    return __atomic_##name(address, value, __ATOMIC_SEQ_CST);        \
  }
#define CUDA_ON_HOST_EXCHANGE(bits, name, is_weak)                          \
  extern "C" int __tsan_atomic##bits##_compare_exchange_##name(             \
      volatile uint##bits##_t* address, uint##bits##_t* expected,           \
      uint##bits##_t value, int, int) {                                     \
    return __atomic_compare_exchange_n(address, expected, value, is_weak,   \
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }
#define CUDA_ON_HOST_ATOMIC(bits)                                    \
  extern "C" uint##bits##_t __tsan_atomic##bits##_load(              \
      const volatile uint##bits##_t* address, int) {                 \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);               \
  }                                                                  \
  extern "C" void __tsan_atomic##bits##_store(                       \
      volatile uint##bits##_t* address, uint##bits##_t value, int) { \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);              \
  }                                                                  \
  extern "C" uint##bits##_t __tsan_atomic##bits##_exchange(          \
      volatile uint##bits##_t* address, uint##bits##_t value, int) { \
    return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);    \
  }                                                                  \
  CUDA_ON_HOST_FETCH(bits, fetch_add)                                \
  CUDA_ON_HOST_FETCH(bits, fetch_sub)                                \
  CUDA_ON_HOST_FETCH(bits, fetch_and)                                \
  CUDA_ON_HOST_FETCH(bits, fetch_or)                                 \
  CUDA_ON_HOST_FETCH(bits, fetch_xor)                                \
  CUDA_ON_HOST_EXCHANGE(bits, strong, false)                         \
  CUDA_ON_HOST_EXCHANGE(bits, weak, true)
CUDA_ON_HOST_ATOMIC(8)
CUDA_ON_HOST_ATOMIC(16)
CUDA_ON_HOST_ATOMIC(32)
CUDA_ON_HOST_ATOMIC(64)

#endif  // !PARASOL_SANITIZER

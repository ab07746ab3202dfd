#ifndef PARASOL_ML_KERNEL_IMAGE_WINOGRAD_VECTOR_H_
#define PARASOL_ML_KERNEL_IMAGE_WINOGRAD_VECTOR_H_

#include <immintrin.h>

// Vectors of 16 float32 for functions that are compiled for AVX-512 whatever
// the rest of the program is. They run only where Winograd::Fits() says so, and
// their helpers are inlined: a vector is never passed to a function that is
// compiled for another processor.

#define PARASOL_AVX512 __attribute__((target("avx512f,fma")))
#define PARASOL_AVX512_INLINE \
  __attribute__((target("avx512f,fma"), always_inline)) inline

namespace parasol::cpu::winograd {

using Vector = __m512;

PARASOL_AVX512_INLINE Vector Load(const float* from) {
  return _mm512_loadu_ps(from);
}

PARASOL_AVX512_INLINE void Store(float* to, Vector value) {
  _mm512_storeu_ps(to, value);
}

PARASOL_AVX512_INLINE Vector Zero() { return _mm512_setzero_ps(); }

}  // namespace parasol::cpu::winograd

#endif  // PARASOL_ML_KERNEL_IMAGE_WINOGRAD_VECTOR_H_

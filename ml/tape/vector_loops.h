#ifndef PARASOL_ML_TAPE_VECTOR_LOOPS_H_
#define PARASOL_ML_TAPE_VECTOR_LOOPS_H_

#include <cstdint>

// Loops over functions of elements. A function is a type with operator(), which
// is inlined. Each loop is compiled for AVX2 and for any machine, with the same
// bits, and the machine's one is chosen when it runs. (target_clones, as
// base/multiversion.h has it, takes no templates.)
namespace parasol::vector_loops {

#define PARASOL_ELEMENT __attribute__((always_inline)) inline
#if defined(__x86_64__)
#define PARASOL_AVX2 __attribute__((target("avx2")))
#else
#define PARASOL_AVX2
#endif

inline bool HasAvx2() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
#else
  return false;
#endif
}

template <typename F>
PARASOL_ELEMENT void UnaryLoop(const F& f, const float* x, int64_t size,
                               float* y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < size; ++i) y[i] = f(x[i]);
}
template <typename F>
PARASOL_AVX2 void UnaryAvx2(const F& f, const float* x, int64_t size,
                            float* y) {
  UnaryLoop(f, x, size, y);
}
// Writes f(x) of each element.
template <typename F>
void Unary(const F& f, const float* x, int64_t size, float* y) {
  HasAvx2() ? UnaryAvx2(f, x, size, y) : UnaryLoop(f, x, size, y);
}

template <typename F, typename T>
PARASOL_ELEMENT void BinaryLoop(const F& f, const T* a, int64_t a_step,
                                const T* b, int64_t b_step, int64_t size,
                                float* y) {
  if (a_step == 1 && b_step == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < size; ++i) y[i] = f(a[i], b[i]);
  } else if (a_step == 1) {
    const T right = *b;
#pragma GCC ivdep
    for (int64_t i = 0; i < size; ++i) y[i] = f(a[i], right);
  } else if (b_step == 1) {
    const T left = *a;
#pragma GCC ivdep
    for (int64_t i = 0; i < size; ++i) y[i] = f(left, b[i]);
  } else {
    const float both = f(*a, *b);
    for (int64_t i = 0; i < size; ++i) y[i] = both;
  }
}
template <typename F, typename T>
PARASOL_AVX2 void BinaryAvx2(const F& f, const T* a, int64_t a_step, const T* b,
                             int64_t b_step, int64_t size, float* y) {
  BinaryLoop(f, a, a_step, b, b_step, size, y);
}
// Writes f(a, b) of each pair; elements of an operand are 0 or 1 apart.
template <typename F, typename T>
void Binary(const F& f, const T* a, int64_t a_step, const T* b, int64_t b_step,
            int64_t size, float* y) {
  HasAvx2() ? BinaryAvx2(f, a, a_step, b, b_step, size, y)
            : BinaryLoop(f, a, a_step, b, b_step, size, y);
}

}  // namespace parasol::vector_loops

#endif  // PARASOL_ML_TAPE_VECTOR_LOOPS_H_

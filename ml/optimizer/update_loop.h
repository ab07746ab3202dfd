#ifndef PARASOL_ML_OPTIMIZER_UPDATE_LOOP_H_
#define PARASOL_ML_OPTIMIZER_UPDATE_LOOP_H_

#include <cstddef>
#include <cstring>

// Marks a function that is compiled for AVX-512, for AVX2 and for any x86-64,
// of which the dynamic linker picks one. The plain loop is the only source.
//
// All versions give the same bits: each operation is rounded by IEEE 754, and
// -ffp-contract=off (in BUILD) keeps the compiler from fusing a multiplication
// and an addition where a machine could.
//
// Off under sanitizers, whose runtime is not up yet when the linker picks.
#if defined(__x86_64__) && !defined(PARASOL_SANITIZER)
#define PARASOL_MULTIVERSION \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PARASOL_MULTIVERSION
#endif

// In front of a loop over an UpdateSpan's elements: iteration i touches element
// i of each array and no other, so the compiler need not rule out overlap,
// which it cannot when the update is in place.
#if defined(__clang__)
#define PARASOL_INDEPENDENT_ITERATIONS \
  _Pragma("clang loop vectorize(assume_safety)")
#else
#define PARASOL_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace parasol {

// The i-th float32 of `bytes`, at any alignment.
inline float LoadFloat(const std::byte* bytes, size_t i) {
  float value;
  std::memcpy(&value, bytes + i * sizeof(float), sizeof(float));
  return value;
}

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_UPDATE_LOOP_H_

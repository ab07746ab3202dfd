#ifndef PARASOL_BASE_MULTIVERSION_H_
#define PARASOL_BASE_MULTIVERSION_H_

// Marks a function that is compiled for AVX-512, for AVX2 and for any x86-64,
// of which the dynamic linker picks one. The plain loop is the only source.
//
// All versions give the same bits if each operation is rounded by IEEE 754:
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

// In front of a loop whose iteration i touches element i of each array and no
// other, so the compiler need not rule out overlap, which it cannot when the
// loop works in place.
#if defined(__clang__)
#define PARASOL_INDEPENDENT_ITERATIONS \
  _Pragma("clang loop vectorize(assume_safety)")
#else
#define PARASOL_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

#endif  // PARASOL_BASE_MULTIVERSION_H_

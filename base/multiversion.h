#ifndef PARASOL_BASE_MULTIVERSION_H_
#define PARASOL_BASE_MULTIVERSION_H_

// Marks a function that is compiled for AVX-512, for AVX2 and for any x86-64;
// the dynamic linker picks one version. The plain loop is the only source.
//
// All versions give the same bits because each operation is rounded by IEEE
// 754: -ffp-contract=off (in BUILD) keeps the compiler from fusing a
// multiplication and an addition on machines that can.
//
// Expands to nothing under sanitizers, whose runtime is not yet initialised
// when the linker picks.
#if defined(__x86_64__) && !defined(PARASOL_SANITIZER)
#define PARASOL_MULTIVERSION \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PARASOL_MULTIVERSION
#endif

// Precedes a loop whose iteration i touches element i of each array and no
// other element. The compiler then need not prove that the arrays do not
// overlap, which it cannot do for a loop that works in place.
#if defined(__clang__)
#define PARASOL_INDEPENDENT_ITERATIONS \
  _Pragma("clang loop vectorize(assume_safety)")
#else
#define PARASOL_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

#endif  // PARASOL_BASE_MULTIVERSION_H_

#include "cluster/collective/plan/ordered_sum.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/multiversion.h"

namespace parasol {
namespace {

// Elements that are summed at a time: they stay in the L1 cache.
constexpr size_t kBlock = 1024;

PARASOL_MULTIVERSION void AddTwo(const float* a, const float* b, float* sum,
                                 size_t count) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

PARASOL_MULTIVERSION void AddThree(const float* a, const float* b,
                                   const float* c, float* sum, size_t count) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) sum[i] = (a[i] + b[i]) + c[i];
}

PARASOL_MULTIVERSION void AddFour(const float* a, const float* b,
                                  const float* c, const float* d, float* sum,
                                  size_t count) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) sum[i] = ((a[i] + b[i]) + c[i]) + d[i];
}

// Sums five addends or more. An addend may be `sum`, so the partial sums of a
// block lie elsewhere.
void AddMany(absl::Span<const float* const> addends, float* sum, size_t count) {
  float partial[kBlock];
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t block = std::min(kBlock, count - first);
    AddFour(addends[0] + first, addends[1] + first, addends[2] + first,
            addends[3] + first, partial, block);
    for (const float* const addend : addends.subspan(4)) {
      AddTwo(partial, addend + first, partial, block);
    }
    std::memcpy(sum + first, partial, block * sizeof(float));
  }
}

}  // namespace

void SumInOrder(absl::Span<const float* const> addends, absl::Span<float> sum) {
  const size_t count = sum.size();
  if (count == 0) return;
  switch (addends.size()) {
    case 0:
      std::fill(sum.begin(), sum.end(), 0.0f);
      return;
    case 1:
      if (addends[0] == sum.data()) return;
      std::memcpy(sum.data(), addends[0], count * sizeof(float));
      return;
    case 2:
      return AddTwo(addends[0], addends[1], sum.data(), count);
    case 3:
      return AddThree(addends[0], addends[1], addends[2], sum.data(), count);
    case 4:
      return AddFour(addends[0], addends[1], addends[2], addends[3], sum.data(),
                     count);
    default:
      return AddMany(addends, sum.data(), count);
  }
}

void CopyPastCaches(const float* from, size_t count, float* to) {
#if defined(__SSE2__)
  constexpr size_t kVector = 4;
  // Vectors are stored at multiples of their size.
  for (; count > 0 && reinterpret_cast<uintptr_t>(to) % 16 != 0; --count) {
    *to++ = *from++;
  }
  for (; count >= kVector; count -= kVector) {
    _mm_stream_ps(to, _mm_loadu_ps(from));
    from += kVector;
    to += kVector;
  }
  // Other threads see them before what is written from here on.
  _mm_sfence();
#endif
  std::copy_n(from, count, to);
}

}  // namespace parasol

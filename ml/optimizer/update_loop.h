#ifndef PARASOL_ML_OPTIMIZER_UPDATE_LOOP_H_
#define PARASOL_ML_OPTIMIZER_UPDATE_LOOP_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/multiversion.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/rule/rowwise_adagrad.h"
#include "ml/optimizer/rule/rule.h"
#include "ml/optimizer/simd_level.h"

// The loops that all optimizers share: a rule (ml/optimizer/rule/rule.h)
// applied to each element.
//
// The loops are compiled for AVX-512, for AVX2 and for any x86-64; the machine
// that runs them selects one. All versions give the same bits: each operation
// is rounded by IEEE 754, and -ffp-contract=off (in BUILD) keeps the compiler
// from fusing a multiplication and an addition where a machine could.
//
// PARASOL_MULTIVERSION is not used, because GCC does not accept it on a
// template and a test cannot choose the version.

namespace parasol {
namespace update_loop {

// Addresses of an update's arrays: of a span, or of one row.
template <size_t kSlots>
struct Arrays {
  const std::byte* gradient;
  const float* value;
  float* new_value;
  std::array<float*, kSlots> slots;
};

// Updates element `i`. Everything is read before anything is written, so that
// the compiler need not check whether the arrays overlap.
template <typename Rule, size_t... I>
PARASOL_RULE void UpdateElement(const Rule& rule,
                                const Arrays<Rule::kSlots>& arrays, size_t i,
                                std::index_sequence<I...>) {
  float gradient;
  std::memcpy(&gradient, arrays.gradient + i * sizeof(float), sizeof(float));
  std::array<float, Rule::kSlots> slots = {arrays.slots[I][i]...};
  const float value = rule(gradient, arrays.value[i], slots[I]...);
  ((arrays.slots[I][i] = slots[I]), ...);
  arrays.new_value[i] = value;
}

template <typename Rule>
PARASOL_RULE void UpdateElements(const Rule& rule,
                                 const Arrays<Rule::kSlots>& arrays,
                                 size_t begin, size_t end) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = begin; i < end; ++i) {
    UpdateElement(rule, arrays, i, std::make_index_sequence<Rule::kSlots>());
  }
}

// Updates `kCount` elements, as many as a vector has. The loop is not unrolled,
// because unrolling would turn it into scalar code.
template <size_t kCount, typename Rule>
PARASOL_RULE void UpdateVector(const Rule& rule,
                               const Arrays<Rule::kSlots>& arrays,
                               size_t begin) {
#if !defined(__clang__)
#pragma GCC unroll 1
#endif
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < kCount; ++i) {
    UpdateElement(rule, arrays, begin + i,
                  std::make_index_sequence<Rule::kSlots>());
  }
}

struct Span {
  template <typename Rule>
  PARASOL_RULE static void Run(const Rule& rule, const UpdateSpan& u) {
    Arrays<Rule::kSlots> arrays{u.gradient, u.value, u.new_value, {}};
    for (size_t s = 0; s < Rule::kSlots; ++s) arrays.slots[s] = u.slots[s];
    UpdateElements(rule, arrays, 0, u.count);
  }
};

// Rows lie anywhere in memory, so the next rows are fetched while the present
// one is updated: kLinesAhead cache lines at once, kLinesOfRow per row at most.
// The machine itself fetches the rest of a longer row.
constexpr size_t kCacheLine = 64;
constexpr size_t kLinesAhead = 64;
constexpr size_t kLinesOfRow = 8;

// Number of bytes to fetch of one row, and how many rows ahead.
struct Prefetch {
  explicit Prefetch(size_t row_bytes)
      : bytes(std::min(row_bytes, kLinesOfRow * kCacheLine)),
        rows_ahead(kLinesAhead * kCacheLine / (bytes + kCacheLine)) {}

  PARASOL_RULE void Fetch(const float* row) const {
    const auto begin = reinterpret_cast<uintptr_t>(row);
    for (uintptr_t line = begin / kCacheLine * kCacheLine; line < begin + bytes;
         line += kCacheLine) {
      __builtin_prefetch(reinterpret_cast<const void*>(line), /*rw=*/1);
    }
  }

  size_t bytes;
  size_t rows_ahead;
};

// Four lanes of a sum, which every machine adds at once.
using FourLanes = float __attribute__((vector_size(16)));

PARASOL_RULE float SquareOfElement(const std::byte* gradient, size_t i) {
  float g;
  std::memcpy(&g, gradient + i * sizeof(float), sizeof(float));
  return g * g;
}

PARASOL_RULE FourLanes SquaresOfFour(const std::byte* gradient, size_t i) {
  FourLanes g;
  std::memcpy(&g, gradient + i * sizeof(float), sizeof(g));
  return g * g;
}

// Returns the sum of the squares of `width` elements, in the order of the rules
// of rows. No lane goes through memory in parts: that would take most of the
// time of a short row.
PARASOL_RULE float SumOfSquares(const std::byte* gradient, size_t width) {
  static_assert(RowwiseAdagradRule::kLanes == 16);
  FourLanes lanes[4] = {};
  size_t i = 0;
  for (; i + 16 <= width; i += 16) {
    for (size_t four = 0; four < 4; ++four) {
      lanes[four] += SquaresOfFour(gradient, i + 4 * four);
    }
  }
  const size_t fours = (width - i) / 4;
  for (size_t four = 0; four < 3; ++four) {
    if (four < fours) lanes[four] += SquaresOfFour(gradient, i + 4 * four);
  }
  i += 4 * fours;
  if (i < width) {
    const FourLanes last = {
        SquareOfElement(gradient, i),
        i + 1 < width ? SquareOfElement(gradient, i + 1) : 0,
        i + 2 < width ? SquareOfElement(gradient, i + 2) : 0, 0};
    for (size_t four = 0; four < 4; ++four) {
      if (four == fours) lanes[four] += last;
    }
  }
  const FourLanes sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

struct Rows {
  template <typename Rule>
  PARASOL_RULE static void Run(const Rule& rule, const RowUpdate& u) {
    if (u.width == 0) return;
    const size_t of_slots = Rule::kSlots * (kIsRuleOfRows<Rule> ? 1 : u.width);
    const Prefetch prefetch((u.width + of_slots) * sizeof(float));
    for (size_t i = 0; i < u.count; ++i) {
      if (i + prefetch.rows_ahead < u.count) {
        prefetch.Fetch(u.rows[i + prefetch.rows_ahead]);
      }
      RunRow(rule, u.gradient(i), u.rows[i], u.width);
    }
  }

  template <typename Rule>
  PARASOL_RULE static void RunRow(const Rule& rule, const std::byte* gradient,
                                  float* row, size_t width) {
    if constexpr (kIsRuleOfRows<Rule>) {
      const float sum = SumOfSquares(gradient, width);
      RunElements(rule.StepOf(sum, width, row[width]), gradient, row, width);
    } else {
      RunElements(rule, gradient, row, width);
    }
  }

  template <typename Rule>
  PARASOL_RULE static void RunElements(const Rule& rule,
                                       const std::byte* gradient, float* row,
                                       size_t width) {
    Arrays<Rule::kSlots> arrays{gradient, row, row, {}};
    for (size_t s = 0; s < Rule::kSlots; ++s) {
      arrays.slots[s] = row + (1 + s) * width;
    }
    // Most widths are multiples of 16 or of 4.
    size_t i = 0;
    for (; i + 16 <= width; i += 16) UpdateVector<16>(rule, arrays, i);
    for (; i + 4 <= width; i += 4) UpdateVector<4>(rule, arrays, i);
    for (; i < width; ++i) UpdateVector<1>(rule, arrays, i);
  }
};

#if defined(__x86_64__)
template <typename Loop, typename Rule, typename Update>
__attribute__((target("avx512f"))) void RunAvx512(const Rule& rule,
                                                  const Update& update) {
  // A copy of the rule, which no store can change.
  const Rule local = rule;
  Loop::Run(local, update);
}

template <typename Loop, typename Rule, typename Update>
__attribute__((target("avx2"))) void RunAvx2(const Rule& rule,
                                             const Update& update) {
  const Rule local = rule;
  Loop::Run(local, update);
}
#endif

template <typename Loop, typename Rule, typename Update>
void RunBaseline(const Rule& rule, const Update& update) {
  const Rule local = rule;
  Loop::Run(local, update);
}

template <typename Loop, typename Rule, typename Update>
void Run(const Rule& rule, const Update& update) {
  switch (WidestSimdLevel()) {
#if defined(__x86_64__)
    case SimdLevel::kAvx512:
      return RunAvx512<Loop>(rule, update);
    case SimdLevel::kAvx2:
      return RunAvx2<Loop>(rule, update);
#endif
    default:
      return RunBaseline<Loop>(rule, update);
  }
}

}  // namespace update_loop

template <typename Rule>
void ApplyRule(const Rule& rule, const UpdateSpan& update) {
  update_loop::Run<update_loop::Span>(rule, update);
}

template <typename Rule>
void ApplyRule(const Rule& rule, const RowUpdate& update) {
  update_loop::Run<update_loop::Rows>(rule, update);
}

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_UPDATE_LOOP_H_

#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/l2.h"

namespace parasol::cpu {
namespace {

// Partial sums that a vector register holds, of blocks that are short enough
// for single precision; the blocks are added up in double.
constexpr int64_t kLanes = 16;
constexpr int64_t kBlock = 4096;

PARASOL_MULTIVERSION float SumOfSquares(const float* w, int64_t size) {
  float partial[kLanes] = {};
  const int64_t whole = size / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      partial[lane] += w[i + lane] * w[i + lane];
    }
  }
  float sum = 0;
  for (int64_t i = whole; i < size; ++i) sum += w[i] * w[i];
  for (const float part : partial) sum += part;
  return sum;
}

PARASOL_MULTIVERSION void AddScaled(const float* w, int64_t size, float scale,
                                    float* sum) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) sum[i] += scale * w[i];
}

// Returns the term with w, size and gradient, also where those are of rows.
L2Term Resolved(L2Term term) {
  if (term.rows == nullptr) return term;
  term.w = term.rows->values;
  term.size = term.rows->elements;
  term.gradient = term.rows->gradients;
  return term;
}

}  // namespace

absl::Status L2Losses(Device& device, absl::Span<const L2Term> terms,
                      float* losses) {
  for (const L2Term& one : terms) {
    const L2Term term = Resolved(one);
    double sum = 0;
    for (int64_t i = 0; i < term.size; i += kBlock) {
      sum += SumOfSquares(term.w + i, std::min(kBlock, term.size - i));
    }
    *losses++ = term.l2 * sum;
  }
  return absl::OkStatus();
}

absl::Status AddL2Gradients(Device& device, absl::Span<const L2Term> terms) {
  for (const L2Term& one : terms) {
    const L2Term term = Resolved(one);
    AddScaled(term.w, term.size, 2 * term.l2, term.gradient);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu

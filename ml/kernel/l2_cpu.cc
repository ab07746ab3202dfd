#include <algorithm>
#include <cstdint>
#include <vector>

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
// `copy` is memory for values that are in blocks, side by side.
L2Term Resolved(L2Term term, std::vector<float>& copy) {
  if (term.rows == nullptr) return term;
  const TableRows& rows = *term.rows;
  term.w = rows.values;
  term.size = rows.elements;
  term.gradient = rows.gradients;
  if (rows.values != nullptr) return term;
  copy.resize(rows.elements);
  for (int64_t i = 0; i < rows.elements; ++i) copy[i] = rows.value(i);
  term.w = copy.data();
  return term;
}

}  // namespace

absl::Status L2Losses(Device& device, absl::Span<const L2Term> terms,
                      float* losses) {
  std::vector<float> copy;
  for (const L2Term& one : terms) {
    const L2Term term = Resolved(one, copy);
    double sum = 0;
    for (int64_t i = 0; i < term.size; i += kBlock) {
      sum += SumOfSquares(term.w + i, std::min(kBlock, term.size - i));
    }
    *losses++ = term.l2 * sum;
  }
  return absl::OkStatus();
}

absl::Status AddL2Gradients(Device& device, absl::Span<const L2Term> terms) {
  std::vector<float> copy;
  for (const L2Term& one : terms) {
    const L2Term term = Resolved(one, copy);
    AddScaled(term.w, term.size, 2 * term.l2, term.gradient);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu

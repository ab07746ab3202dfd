#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/device/parallel.h"
#include "ml/kernel/sequence/cell_row.h"
#include "ml/kernel/sequence/recurrent_cell.h"
#include "ml/kernel/vector_math.h"

namespace parasol::cpu {
namespace {

struct VectorMath {
  PARASOL_VECTOR_MATH static float Sigmoid(float x) {
    return vector_math::Sigmoid(x);
  }
  PARASOL_VECTOR_MATH static float Tanh(float x) {
    return vector_math::Tanh(x);
  }
};

PARASOL_MULTIVERSION void Run(const LstmRow<VectorMath>& row) {
  const LstmRow<VectorMath> copy = row;
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t u = 0; u < copy.units; ++u) copy(u);
}

PARASOL_MULTIVERSION void Run(const LstmGradientRow<VectorMath>& row) {
  const LstmGradientRow<VectorMath> copy = row;
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t u = 0; u < copy.units; ++u) copy(u);
}

PARASOL_MULTIVERSION void Run(const GruRow<VectorMath>& row) {
  const GruRow<VectorMath> copy = row;
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t u = 0; u < copy.units; ++u) copy(u);
}

PARASOL_MULTIVERSION void Run(const GruGradientRow& row) {
  const GruGradientRow copy = row;
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t u = 0; u < copy.units; ++u) copy(u);
}

template <typename Row>
void RunMasked(const Row& row) {
  for (int64_t u = 0; u < row.units; ++u) row.Masked(u);
}

// Number of units that one thread steps in some 10 µs.
constexpr int64_t kGrain = 1024;

// Calls body(n) for each example.
template <typename Body>
void ForEachExample(Device& device, const CellStep& step, const Body& body) {
  ParallelFor(device, step.examples, kGrain / step.units + 1,
              [&body](int64_t /*part*/, int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) body(n);
              });
}

void Keep(const float* from, int64_t example, int64_t units, float* to) {
  std::copy_n(from + example * units, units, to + example * units);
}

}  // namespace

absl::Status LstmStep(Device& device, const CellStep& step,
                      const float* c_before, float* gates, float* c, float* h) {
  ForEachExample(device, step, [&](int64_t n) {
    if (IsMasked(step, n)) {
      Keep(c_before, n, step.units, c);
      Keep(step.before, n, step.units, h);
    } else {
      Run(LstmRow<VectorMath>(step, c_before, gates, c, h, n));
    }
  });
  return absl::OkStatus();
}

absl::Status LstmStepGradient(Device& device, const CellStep& step,
                              const float* c_before, const float* gates,
                              const float* c, float* dc,
                              const CellGradient& gradient) {
  ForEachExample(device, step, [&](int64_t n) {
    const LstmGradientRow<VectorMath> row(step, c_before, gates, c, dc,
                                          gradient, n);
    IsMasked(step, n) ? RunMasked(row) : Run(row);
  });
  return absl::OkStatus();
}

absl::Status GruStep(Device& device, const CellStep& step, float* gates,
                     float* h) {
  ForEachExample(device, step, [&](int64_t n) {
    if (IsMasked(step, n)) {
      Keep(step.before, n, step.units, h);
    } else {
      Run(GruRow<VectorMath>(step, gates, h, n));
    }
  });
  return absl::OkStatus();
}

absl::Status GruStepGradient(Device& device, const CellStep& step,
                             const float* gates, const CellGradient& gradient) {
  ForEachExample(device, step, [&](int64_t n) {
    const GruGradientRow row(step, gates, gradient, n);
    IsMasked(step, n) ? RunMasked(row) : Run(row);
  });
  return absl::OkStatus();
}

}  // namespace parasol::cpu

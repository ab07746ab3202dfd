#include <cmath>
#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/sequence/cell_row.h"
#include "ml/kernel/sequence/recurrent_cell.h"

namespace parasol::cuda {
namespace {

struct DeviceMath {
  PARASOL_ON_ANY_DEVICE static float Sigmoid(float x) {
    return 1 / (1 + expf(-x));
  }
  PARASOL_ON_ANY_DEVICE static float Tanh(float x) { return tanhf(x); }
};

struct LstmUnit {
  CellStep step;
  const float* c_before;
  float* gates;
  float* c;
  float* h;
  __device__ void operator()(int64_t i) const {
    const int64_t n = i / step.units;
    if (IsMasked(step, n)) {
      c[i] = c_before[i];
      h[i] = step.before[i];
      return;
    }
    LstmRow<DeviceMath>(step, c_before, gates, c, h, n)(i % step.units);
  }
};

struct LstmUnitGradient {
  CellStep step;
  const float* c_before;
  const float* gates;
  const float* c;
  float* dc;
  CellGradient gradient;
  __device__ void operator()(int64_t i) const {
    const int64_t n = i / step.units;
    const LstmGradientRow<DeviceMath> row(step, c_before, gates, c, dc,
                                          gradient, n);
    IsMasked(step, n) ? row.Masked(i % step.units) : row(i % step.units);
  }
};

struct GruUnit {
  CellStep step;
  float* gates;
  float* h;
  __device__ void operator()(int64_t i) const {
    const int64_t n = i / step.units;
    if (IsMasked(step, n)) {
      h[i] = step.before[i];
      return;
    }
    GruRow<DeviceMath>(step, gates, h, n)(i % step.units);
  }
};

struct GruUnitGradient {
  CellStep step;
  const float* gates;
  CellGradient gradient;
  __device__ void operator()(int64_t i) const {
    const int64_t n = i / step.units;
    const GruGradientRow row(step, gates, gradient, n);
    IsMasked(step, n) ? row.Masked(i % step.units) : row(i % step.units);
  }
};

}  // namespace

absl::Status LstmStep(Device& device, const CellStep& step,
                      const float* c_before, float* gates, float* c, float* h) {
  return ForEach(device, "step of an LSTM", step.examples * step.units,
                 LstmUnit{step, c_before, gates, c, h});
}

absl::Status LstmStepGradient(Device& device, const CellStep& step,
                              const float* c_before, const float* gates,
                              const float* c, float* dc,
                              const CellGradient& gradient) {
  return ForEach(device, "gradient of an LSTM's step",
                 step.examples * step.units,
                 LstmUnitGradient{step, c_before, gates, c, dc, gradient});
}

absl::Status GruStep(Device& device, const CellStep& step, float* gates,
                     float* h) {
  return ForEach(device, "step of a GRU", step.examples * step.units,
                 GruUnit{step, gates, h});
}

absl::Status GruStepGradient(Device& device, const CellStep& step,
                             const float* gates, const CellGradient& gradient) {
  return ForEach(device, "gradient of a GRU's step", step.examples * step.units,
                 GruUnitGradient{step, gates, gradient});
}

}  // namespace parasol::cuda

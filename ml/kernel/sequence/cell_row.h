#ifndef PARASOL_ML_KERNEL_SEQUENCE_CELL_ROW_H_
#define PARASOL_ML_KERNEL_SEQUENCE_CELL_ROW_H_

#include <cstdint>

#include "ml/kernel/sequence/recurrent_cell.h"

// The formulas of recurrent cells for one example, unit by unit, which CPU
// loops and CUDA kernels share. `Math` has the functions Sigmoid() and Tanh().
namespace parasol {

// Inlined in any case: in loops of vectors, a call would be of one element.
#ifdef __CUDACC__
#define PARASOL_CELL_FUNCTION __host__ __device__ __forceinline__
#else
#define PARASOL_CELL_FUNCTION __attribute__((always_inline)) inline
#endif

PARASOL_CELL_FUNCTION bool IsMasked(const CellStep& step, int64_t example) {
  return step.mask != nullptr && !(step.mask[example * step.mask_stride] > .5f);
}

// The gradient by an example's output, from everywhere.
struct OutputGradientRow {
  const float* dy;
  const float* through_product;
  const float* around_product;

  PARASOL_CELL_FUNCTION OutputGradientRow(const CellStep& step,
                                          const CellGradient& gradient,
                                          int64_t example)
      : dy(gradient.dy == nullptr ? nullptr
                                  : gradient.dy + example * gradient.dy_stride),
        through_product(gradient.through_product == nullptr
                            ? nullptr
                            : gradient.through_product + example * step.units),
        around_product(gradient.around_product + example * step.units) {}

  PARASOL_CELL_FUNCTION float operator()(int64_t unit) const {
    float sum = around_product[unit];
    if (dy != nullptr) sum += dy[unit];
    if (through_product != nullptr) sum += through_product[unit];
    return sum;
  }
};

template <typename Math>
struct LstmRow {
  int64_t units;
  const float* inputs;
  const float* recurrent;
  const float* c_before;
  float* gates;
  float* c;
  float* h;

  PARASOL_CELL_FUNCTION LstmRow(const CellStep& step, const float* c_before,
                                float* gates, float* c, float* h,
                                int64_t example)
      : units(step.units),
        inputs(step.inputs + example * step.input_stride),
        recurrent(step.recurrent + example * 4 * step.units),
        c_before(c_before + example * step.units),
        gates(gates + example * 4 * step.units),
        c(c + example * step.units),
        h(h + example * step.units) {}

  PARASOL_CELL_FUNCTION void operator()(int64_t u) const {
    const float i = Math::Sigmoid(inputs[u] + recurrent[u]);
    const float f = Math::Sigmoid(inputs[units + u] + recurrent[units + u]);
    const float g =
        Math::Tanh(inputs[2 * units + u] + recurrent[2 * units + u]);
    const float o =
        Math::Sigmoid(inputs[3 * units + u] + recurrent[3 * units + u]);
    const float sum = f * c_before[u] + i * g;
    gates[u] = i;
    gates[units + u] = f;
    gates[2 * units + u] = g;
    gates[3 * units + u] = o;
    c[u] = sum;
    h[u] = o * Math::Tanh(sum);
  }
};

template <typename Math>
struct LstmGradientRow {
  OutputGradientRow dh;
  int64_t units;
  const float* c_before;
  const float* gates;
  const float* c;
  float* dc;
  float* around_product;
  float* inputs;
  float* recurrent;

  PARASOL_CELL_FUNCTION LstmGradientRow(const CellStep& step,
                                        const float* c_before,
                                        const float* gates, const float* c,
                                        float* dc, const CellGradient& gradient,
                                        int64_t example)
      : dh(step, gradient, example),
        units(step.units),
        c_before(c_before + example * step.units),
        gates(gates + example * 4 * step.units),
        c(c + example * step.units),
        dc(dc + example * step.units),
        around_product(gradient.around_product + example * step.units),
        inputs(gradient.inputs + example * step.input_stride),
        recurrent(gradient.recurrent + example * 4 * step.units) {}

  PARASOL_CELL_FUNCTION void operator()(int64_t u) const {
    const float i = gates[u];
    const float f = gates[units + u];
    const float g = gates[2 * units + u];
    const float o = gates[3 * units + u];
    const float tanh_c = Math::Tanh(c[u]);
    const float by_h = dh(u);
    const float by_c = dc[u] + by_h * o * (1 - tanh_c * tanh_c);
    dc[u] = by_c * f;
    around_product[u] = 0;
    Write(u, by_c * g * i * (1 - i));
    Write(units + u, by_c * c_before[u] * f * (1 - f));
    Write(2 * units + u, by_c * i * (1 - g * g));
    Write(3 * units + u, by_h * tanh_c * o * (1 - o));
  }
  // An example that kept its state: c's gradient stays.
  PARASOL_CELL_FUNCTION void Masked(int64_t u) const {
    around_product[u] = dh(u);
    for (int64_t gate = 0; gate < 4; ++gate) Write(gate * units + u, 0);
  }
  PARASOL_CELL_FUNCTION void Write(int64_t place, float value) const {
    inputs[place] = value;
    recurrent[place] = value;
  }
};

template <typename Math>
struct GruRow {
  int64_t units;
  const float* inputs;
  const float* recurrent;
  const float* before;
  float* gates;
  float* h;

  PARASOL_CELL_FUNCTION GruRow(const CellStep& step, float* gates, float* h,
                               int64_t example)
      : units(step.units),
        inputs(step.inputs + example * step.input_stride),
        recurrent(step.recurrent + example * 3 * step.units),
        before(step.before + example * step.units),
        gates(gates + example * 4 * step.units),
        h(h + example * step.units) {}

  PARASOL_CELL_FUNCTION void operator()(int64_t u) const {
    const float z = Math::Sigmoid(inputs[u] + recurrent[u]);
    const float r = Math::Sigmoid(inputs[units + u] + recurrent[units + u]);
    const float part = recurrent[2 * units + u];
    const float candidate = Math::Tanh(inputs[2 * units + u] + r * part);
    gates[u] = z;
    gates[units + u] = r;
    gates[2 * units + u] = candidate;
    gates[3 * units + u] = part;
    h[u] = z * before[u] + (1 - z) * candidate;
  }
};

struct GruGradientRow {
  OutputGradientRow dh;
  int64_t units;
  const float* before;
  const float* gates;
  float* around_product;
  float* inputs;
  float* recurrent;

  PARASOL_CELL_FUNCTION GruGradientRow(const CellStep& step, const float* gates,
                                       const CellGradient& gradient,
                                       int64_t example)
      : dh(step, gradient, example),
        units(step.units),
        before(step.before + example * step.units),
        gates(gates + example * 4 * step.units),
        around_product(gradient.around_product + example * step.units),
        inputs(gradient.inputs + example * step.input_stride),
        recurrent(gradient.recurrent + example * 3 * step.units) {}

  PARASOL_CELL_FUNCTION void operator()(int64_t u) const {
    const float z = gates[u];
    const float r = gates[units + u];
    const float candidate = gates[2 * units + u];
    const float part = gates[3 * units + u];
    const float by_h = dh(u);
    const float dz = by_h * (before[u] - candidate) * z * (1 - z);
    const float dcandidate = by_h * (1 - z) * (1 - candidate * candidate);
    const float dr = dcandidate * part * r * (1 - r);
    around_product[u] = by_h * z;
    inputs[u] = dz;
    inputs[units + u] = dr;
    inputs[2 * units + u] = dcandidate;
    recurrent[u] = dz;
    recurrent[units + u] = dr;
    recurrent[2 * units + u] = dcandidate * r;
  }
  PARASOL_CELL_FUNCTION void Masked(int64_t u) const {
    around_product[u] = dh(u);
    for (int64_t gate = 0; gate < 3; ++gate) {
      inputs[gate * units + u] = 0;
      recurrent[gate * units + u] = 0;
    }
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_SEQUENCE_CELL_ROW_H_

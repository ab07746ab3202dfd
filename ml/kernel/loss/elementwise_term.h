#ifndef PARASOL_ML_KERNEL_LOSS_ELEMENTWISE_TERM_H_
#define PARASOL_ML_KERNEL_LOSS_ELEMENTWISE_TERM_H_

#include <cmath>
#include <variant>

// Marks functions that loops of the CPU and CUDA kernels are compiled from.
#ifdef __CUDACC__
#define PARASOL_LOSS_TERM __host__ __device__ __forceinline__
#else
#define PARASOL_LOSS_TERM __attribute__((always_inline)) inline
#endif

namespace parasol {

// Losses that are means over an example's outputs of a term of one output z and
// its label y. Loss() returns the term, Slope() its derivative by z. The
// numbers that are the same for all outputs are members.

struct AbsoluteErrorTerm {
  PARASOL_LOSS_TERM float Loss(float z, float y) const {
    return std::fabs(z - y);
  }
  // 0 where output and label are equal, as TensorFlow's.
  PARASOL_LOSS_TERM float Slope(float z, float y) const {
    return z == y ? 0.0f : std::copysign(1.0f, z - y);
  }
};

// e² / 2 for errors up to delta, delta · (|e| - delta / 2) beyond.
struct HuberTerm {
  float delta;

  PARASOL_LOSS_TERM float Loss(float z, float y) const {
    const float e = std::fabs(z - y);
    return e > delta ? delta * (e - 0.5f * delta) : 0.5f * e * e;
  }
  PARASOL_LOSS_TERM float Slope(float z, float y) const {
    const float e = z - y;
    return std::fabs(e) > delta ? std::copysign(delta, e) : e;
  }
};

// max(0, 1 - (2y - 1) · z), for labels 0 and 1.
struct HingeTerm {
  PARASOL_LOSS_TERM float Loss(float z, float y) const {
    const float margin = 1 - (2 * y - 1) * z;
    return margin < 0 ? 0 : margin;
  }
  // Takes the slope of the side with a loss at the edge, as TensorFlow does.
  PARASOL_LOSS_TERM float Slope(float z, float y) const {
    const float sign = 2 * y - 1;
    return 1 - sign * z < 0 ? 0 : -sign;
  }
};

// z - y · log(z + 1e-7), of a rate z (Keras's "poisson"). NaN for z below 0.
struct PoissonTerm {
  PARASOL_LOSS_TERM float Loss(float z, float y) const {
    return z - y * std::log(z + 1e-7f);
  }
  PARASOL_LOSS_TERM float Slope(float z, float y) const {
    return 1 - y / (z + 1e-7f);
  }
};

// Binary cross-entropy of the logit z, times q^gamma, q being the probability
// that the logit does not give to the label, times a factor by label (Keras's
// BinaryFocalCrossentropy). Labels are smoothed to y · (1 - s) + s / 2.
struct FocalTerm {
  float gamma;
  float of_one;   // factor of label 1
  float of_zero;  // factor of label 0
  float smoothing;

  // Numbers that both functions compute with.
  struct Parts {
    float y;              // smoothed label
    float p;              // sigmoid of the logit
    float q;              // y · (1 - p) + (1 - y) · p
    float cross_entropy;  // -y · log p - (1 - y) · log(1 - p)
    float factor;
  };

  PARASOL_LOSS_TERM Parts PartsOf(float z, float label) const {
    const float y = label * (1 - smoothing) + smoothing / 2;
    const float e = std::exp(-std::fabs(z));
    const float larger = 1 / (1 + e);
    const float p = z < 0 ? e * larger : larger;
    const float rest = z < 0 ? larger : e * larger;
    return {.y = y,
            .p = p,
            .q = y * rest + (1 - y) * p,
            .cross_entropy = (z < 0 ? 0 : z) - z * y + std::log1p(e),
            .factor = y * of_one + (1 - y) * of_zero};
  }

  PARASOL_LOSS_TERM float Loss(float z, float label) const {
    const Parts part = PartsOf(z, label);
    return part.factor * std::pow(part.q, gamma) * part.cross_entropy;
  }

  // (q^γ · b)' = q^γ · (γ · (1 - 2y) · p · (1 - p) / q · b + p - y): p · (1 -
  // p) falls with q, so that a q of 0 leaves nothing of the first term.
  PARASOL_LOSS_TERM float Slope(float z, float label) const {
    const Parts part = PartsOf(z, label);
    const float e = std::exp(-std::fabs(z));
    const float spread = e / ((1 + e) * (1 + e));
    const float growth =
        part.q > 0 ? gamma * (1 - 2 * part.y) * (spread / part.q) : 0;
    return part.factor * std::pow(part.q, gamma) *
           (growth * part.cross_entropy + part.p - part.y);
  }
};

// Binary cross-entropy of a probability p, -y · log(p + ε) - (1 - y) · log(1 -
// p
// + ε), with p clipped to [ε, 1 - ε] for ε = 1e-7 (Keras's from_logits=False).
// Labels are smoothed to y · (1 - s) + s / 2.
struct ProbabilityTerm {
  float smoothing;

  static constexpr float kEpsilon = 1e-7f;

  PARASOL_LOSS_TERM float Smoothed(float label) const {
    return label * (1 - smoothing) + smoothing / 2;
  }
  // A NaN stays one.
  PARASOL_LOSS_TERM static float Clipped(float p) {
    const float raised = p < kEpsilon ? kEpsilon : p;
    return raised > 1 - kEpsilon ? 1 - kEpsilon : raised;
  }
  PARASOL_LOSS_TERM float Loss(float p, float label) const {
    const float y = Smoothed(label);
    const float q = Clipped(p);
    return -y * std::log(q + kEpsilon) - (1 - y) * std::log(1 - q + kEpsilon);
  }
  // 0 where p is clipped, as TensorFlow's clip_by_value.
  PARASOL_LOSS_TERM float Slope(float p, float label) const {
    const float y = Smoothed(label);
    if (p < kEpsilon || p > 1 - kEpsilon) return 0;
    return (1 - y) / (1 - p + kEpsilon) - y / (p + kEpsilon);
  }
};

using ElementwiseTerm = std::variant<AbsoluteErrorTerm, HuberTerm, HingeTerm,
                                     PoissonTerm, FocalTerm, ProbabilityTerm>;

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_LOSS_ELEMENTWISE_TERM_H_

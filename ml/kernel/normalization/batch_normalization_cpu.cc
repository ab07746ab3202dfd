#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/multiversion.h"
#include "ml/device/parallel.h"
#include "ml/kernel/normalization/batch_normalization.h"
#include "ml/kernel/normalization/channel_sums.h"

namespace parasol::cpu {
namespace {

// Wide rows to a thread: some thousand elements.
constexpr int64_t kGrain = 32;

// The variance's sums are of (x - pivot)² and of x - pivot, so that one pass
// over x is enough. The pivot is the mean of so many rows, near enough to the
// batch's that the sums keep float32's precision however large the mean is.
constexpr int64_t kPivotRows = 32;

PARASOL_MULTIVERSION
void AddMoments(const float* x, int64_t size, const float* pivot, int64_t width,
                float* sums, float* squares) {
  for (; size > 0; size -= width, x += width) {
    const int64_t count = std::min(size, width);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const float difference = x[i] - pivot[i];
      sums[i] += difference;
      squares[i] += difference * difference;
    }
  }
}

PARASOL_MULTIVERSION
void Normalize(const float* x, int64_t size, const float* mean,
               const float* scale, const float* shift, int64_t width,
               float* y) {
  for (; size > 0; size -= width, x += width, y += width) {
    const int64_t count = std::min(size, width);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      y[i] = (x[i] - mean[i]) * scale[i] + shift[i];
    }
  }
}

PARASOL_MULTIVERSION
void NormalizeWithRelu(const float* x, int64_t size, const float* mean,
                       const float* scale, const float* shift, int64_t width,
                       float* y) {
  for (; size > 0; size -= width, x += width, y += width) {
    const int64_t count = std::min(size, width);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const float value = (x[i] - mean[i]) * scale[i] + shift[i];
      y[i] = value < 0 ? 0 : value;
    }
  }
}

PARASOL_MULTIVERSION
void NormalizeIntoSum(const float* x, const float* term, int64_t size,
                      const float* mean, const float* scale, const float* shift,
                      int64_t width, float* y) {
  for (; size > 0; size -= width, x += width, term += width, y += width) {
    const int64_t count = std::min(size, width);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      y[i] = ((x[i] - mean[i]) * scale[i] + shift[i]) + term[i];
    }
  }
}

PARASOL_MULTIVERSION
void NormalizeIntoSumWithRelu(const float* x, const float* term, int64_t size,
                              const float* mean, const float* scale,
                              const float* shift, int64_t width, float* y) {
  for (; size > 0; size -= width, x += width, term += width, y += width) {
    const int64_t count = std::min(size, width);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const float sum = ((x[i] - mean[i]) * scale[i] + shift[i]) + term[i];
      y[i] = sum < 0 ? 0 : sum;
    }
  }
}

PARASOL_MULTIVERSION
void AddGradients(const float* x, const float* dy, int64_t size,
                  const float* mean, int64_t width, float* sums,
                  float* products) {
  for (; size > 0; size -= width, x += width, dy += width) {
    const int64_t count = std::min(size, width);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      sums[i] += dy[i];
      products[i] += dy[i] * (x[i] - mean[i]);
    }
  }
}

// Changes `dy` to the gradient before the relu whose output is `y`.
PARASOL_MULTIVERSION
void AddGradientsOfSum(const float* x, const float* y, float* dy, int64_t size,
                       const float* mean, int64_t width, float* sums,
                       float* products) {
  for (; size > 0; size -= width, x += width, y += width, dy += width) {
    const int64_t count = std::min(size, width);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const float before = dy[i];
      const float gradient = y[i] > 0 ? before : 0;
      dy[i] = gradient;
      sums[i] += gradient;
      products[i] += gradient * (x[i] - mean[i]);
    }
  }
}

// The output is computed again to see whether relu let it through: one array
// less to read, and the same bits, as nothing is fused.
PARASOL_MULTIVERSION
void AddGradientsThroughRelu(const float* x, const float* dy, int64_t size,
                             const float* mean, const float* scale,
                             const float* shift, int64_t width, float* sums,
                             float* products) {
  for (; size > 0; size -= width, x += width, dy += width) {
    const int64_t count = std::min(size, width);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const float difference = x[i] - mean[i];
      const float gradient = difference * scale[i] + shift[i] > 0 ? dy[i] : 0;
      sums[i] += gradient;
      products[i] += gradient * difference;
    }
  }
}

// dx = scale · dy - constant - (x - mean) · slope.
PARASOL_MULTIVERSION
void WriteInputGradient(const float* x, const float* dy, int64_t size,
                        const float* mean, const float* scale,
                        const float* constant, const float* slope,
                        int64_t width, float* dx) {
  for (; size > 0; size -= width, x += width, dy += width, dx += width) {
    const int64_t count = std::min(size, width);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      dx[i] = scale[i] * dy[i] - constant[i] - (x[i] - mean[i]) * slope[i];
    }
  }
}

PARASOL_MULTIVERSION
void WriteInputGradientThroughRelu(const float* x, const float* dy,
                                   int64_t size, const float* mean,
                                   const float* scale, const float* shift,
                                   const float* constant, const float* slope,
                                   int64_t width, float* dx) {
  for (; size > 0; size -= width, x += width, dy += width, dx += width) {
    const int64_t count = std::min(size, width);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const float difference = x[i] - mean[i];
      const float gradient = difference * scale[i] + shift[i] > 0 ? dy[i] : 0;
      dx[i] = scale[i] * gradient - constant[i] - difference * slope[i];
    }
  }
}

class CpuBatchNormalization : public BatchNormalization {
 public:
  CpuBatchNormalization(Device& device, const Shape& shape,
                        const Options& options)
      : device_(device),
        shape_(shape),
        options_(options),
        rows_(shape.rows, shape.channels),
        sums_(device, rows_, /*sums=*/2),
        mean_(shape.channels),
        variance_(shape.channels),
        inverse_(shape.channels),
        narrow_(shape.channels),
        wide_mean_(rows_.width),
        scale_(rows_.width),
        shift_(rows_.width),
        constant_(rows_.width),
        slope_(rows_.width) {}

  absl::Status ForwardTraining(ConstElements x, const float* gamma,
                               const float* beta, ConstElements term,
                               Elements y) override {
    ComputeMoments(x);
    Apply(x, gamma, beta, term, y);
    return absl::OkStatus();
  }

  absl::Status ForwardEvaluation(ConstElements x, const float* gamma,
                                 const float* beta, const Moments& moving,
                                 ConstElements term, Elements y) override {
    std::copy_n(moving.mean, shape_.channels, mean_.data());
    // NaN stays NaN.
    for (int64_t c = 0; c < shape_.channels; ++c) {
      variance_[c] = moving.variance[c] < 0 ? 0 : moving.variance[c];
    }
    Apply(x, gamma, beta, term, y);
    return absl::OkStatus();
  }

  absl::Status Backward(ConstElements x, ConstElements dy,
                        const Gradients& gradients,
                        const MomentsUpdate& update) override {
    WriteGradients(x, dy, SumGradients(x, dy), gradients, update);
    return absl::OkStatus();
  }

  absl::Status BackwardOfSum(ConstElements x, ConstElements y, Elements dy,
                             const Gradients& gradients,
                             const MomentsUpdate& update) override {
    const absl::Span<const double> sums =
        has_relu() ? SumGradientsOfSum(x, y, dy) : SumGradients(x, dy);
    WriteGradients(x, dy, sums, gradients, update);
    return absl::OkStatus();
  }

  absl::Status ChangeMoments(const MomentsUpdate& update) override {
    const double rate = 1 - update.momentum;
    for (int64_t c = 0; c < shape_.channels; ++c) {
      update.change.mean[c] = rate * (update.moving.mean[c] - mean_[c]);
      update.change.variance[c] =
          rate * (update.moving.variance[c] - variance_[c] * shape_.unbiased());
    }
    return absl::OkStatus();
  }

 private:
  bool has_relu() const { return options_.epilogue == Epilogue::kRelu; }
  // One behind a term is not computed again.
  bool has_own_relu() const { return has_relu() && !options_.has_term; }

  void WriteGradients(const float* x, const float* dy,
                      absl::Span<const double> sums, const Gradients& gradients,
                      const MomentsUpdate& update) {
    VariableGradients(sums, gradients.dgamma, gradients.dbeta);
    if (update.change.mean != nullptr) ChangeMoments(update).IgnoreError();
    if (gradients.dx == nullptr) return;
    if (gradients.of_evaluation) {
      Widen(constant_, [](int64_t) { return 0; });
      Widen(slope_, [](int64_t) { return 0; });
    } else {
      WidenInputFactors(sums);
    }
    InputGradient(x, dy, gradients.dx);
  }

  // `sums` are Σ dy and Σ dy · (x - mean) of each channel.
  void VariableGradients(absl::Span<const double> sums, float* dgamma,
                         float* dbeta) {
    const absl::Span<const double> products = sums.subspan(shape_.channels);
    for (int64_t c = 0; c < shape_.channels; ++c) {
      if (dbeta != nullptr) dbeta[c] = sums[c];
      if (dgamma != nullptr) dgamma[c] = products[c] * inverse_[c];
    }
  }

  void WidenInputFactors(absl::Span<const double> sums) {
    const absl::Span<const double> products = sums.subspan(shape_.channels);
    // With n rows and i = 1 / sqrt(variance + epsilon):
    //   dx = scale · (dy - Σ dy / n - (x - mean) · i² · Σ dy (x - mean) / n)
    const double n = shape_.rows;
    Widen(constant_, [&](int64_t c) { return scale_[c] * sums[c] / n; });
    Widen(slope_, [&](int64_t c) {
      return scale_[c] * inverse_[c] * inverse_[c] * products[c] / n;
    });
  }

  void InputGradient(const float* x, const float* dy, float* dx) {
    ForEachPart([&](int64_t at, int64_t size) {
      if (has_own_relu()) {
        WriteInputGradientThroughRelu(x + at, dy + at, size, wide_mean_.data(),
                                      scale_.data(), shift_.data(),
                                      constant_.data(), slope_.data(),
                                      rows_.width, dx + at);
      } else {
        WriteInputGradient(x + at, dy + at, size, wide_mean_.data(),
                           scale_.data(), constant_.data(), slope_.data(),
                           rows_.width, dx + at);
      }
    });
  }

  // Sets wide[i] to value(channel of i).
  template <typename Value>
  void Widen(std::vector<float>& wide, Value value) {
    for (int64_t c = 0; c < shape_.channels; ++c) narrow_[c] = value(c);
    rows_.Repeat(narrow_, wide.data());
  }

  // Calls body(begin, size) for elements that together are all.
  template <typename Body>
  void ForEachPart(Body body) {
    ParallelFor(device_, rows_.count(), kGrain,
                [&](int64_t part, int64_t begin, int64_t end) {
                  const int64_t first = begin * rows_.width;
                  body(first, std::min(end * rows_.width, rows_.size) - first);
                });
  }

  void ComputeMoments(const float* x) {
    ComputePivot(x);
    const absl::Span<const double> sums =
        sums_.Run([&](int64_t begin, int64_t size, float* part) {
          AddMoments(x + begin, size, wide_mean_.data(), rows_.width, part,
                     part + rows_.width);
        });
    const double n = shape_.rows;
    for (int64_t c = 0; c < shape_.channels; ++c) {
      const double offset = sums[c] / n;
      const double square = sums[shape_.channels + c] / n;
      mean_[c] = wide_mean_[c] + offset;
      // Rounding may leave it below 0. NaN stays NaN.
      const double variance = square - offset * offset;
      variance_[c] = variance < 0 ? 0 : variance;
    }
  }

  void ComputePivot(const float* x) {
    const int64_t count = std::min(shape_.rows, kPivotRows);
    std::fill(mean_.begin(), mean_.end(), 0);
    for (int64_t i = 0; i < count; ++i) {
      const float* const row = x + shape_.rows * i / count * shape_.channels;
      for (int64_t c = 0; c < shape_.channels; ++c) mean_[c] += row[c];
    }
    Widen(wide_mean_, [&](int64_t c) { return mean_[c] / count; });
  }

  // From mean_ and variance_.
  void Apply(const float* x, const float* gamma, const float* beta,
             const float* term, float* y) {
    for (int64_t c = 0; c < shape_.channels; ++c) {
      inverse_[c] = 1 / std::sqrt(variance_[c] + options_.epsilon);
    }
    Widen(wide_mean_, [&](int64_t c) { return mean_[c]; });
    Widen(scale_, [&](int64_t c) {
      return inverse_[c] * (gamma == nullptr ? 1 : gamma[c]);
    });
    Widen(shift_, [&](int64_t c) { return beta == nullptr ? 0 : beta[c]; });
    if (options_.has_term) return ApplyToSum(x, term, y);
    const auto normalize = has_relu() ? NormalizeWithRelu : Normalize;
    ForEachPart([&](int64_t at, int64_t size) {
      normalize(x + at, size, wide_mean_.data(), scale_.data(), shift_.data(),
                rows_.width, y + at);
    });
  }

  void ApplyToSum(const float* x, const float* term, float* y) {
    const auto normalize =
        has_relu() ? NormalizeIntoSumWithRelu : NormalizeIntoSum;
    ForEachPart([&](int64_t at, int64_t size) {
      normalize(x + at, term + at, size, wide_mean_.data(), scale_.data(),
                shift_.data(), rows_.width, y + at);
    });
  }

  absl::Span<const double> SumGradientsOfSum(const float* x, const float* y,
                                             float* dy) {
    return sums_.Run([&](int64_t at, int64_t size, float* part) {
      AddGradientsOfSum(x + at, y + at, dy + at, size, wide_mean_.data(),
                        rows_.width, part, part + rows_.width);
    });
  }

  // Σ dy and Σ dy · (x - mean) of each channel.
  absl::Span<const double> SumGradients(const float* x, const float* dy) {
    return sums_.Run([&](int64_t at, int64_t size, float* part) {
      if (has_own_relu()) {
        AddGradientsThroughRelu(x + at, dy + at, size, wide_mean_.data(),
                                scale_.data(), shift_.data(), rows_.width, part,
                                part + rows_.width);
      } else {
        AddGradients(x + at, dy + at, size, wide_mean_.data(), rows_.width,
                     part, part + rows_.width);
      }
    });
  }

  Device& device_;
  const Shape shape_;
  const Options options_;
  const WideRows rows_;
  ChannelSums sums_;
  // Moments of each channel; inverse: 1 / sqrt(variance + epsilon).
  std::vector<double> mean_;
  std::vector<double> variance_;
  std::vector<double> inverse_;
  std::vector<float> narrow_;
  // Numbers of each element of a wide row.
  std::vector<float> wide_mean_;
  std::vector<float> scale_;
  std::vector<float> shift_;
  std::vector<float> constant_;
  std::vector<float> slope_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchNormalization>> NewBatchNormalization(
    Device& device, const BatchNormalization::Shape& shape,
    const BatchNormalization::Options& options) {
  return std::make_unique<CpuBatchNormalization>(device, shape, options);
}

}  // namespace parasol::cpu

#include "ml/initializer/initializer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/initializer/fans.h"
#include "ml/initializer/initializer_fields.h"
#include "ml/initializer/orthogonal.h"
#include "ml/initializer/philox.h"
#include "ml/initializer/variable_key.h"

namespace parasol {
namespace {

// The bits of one variable. Counter: element (64 bits), draw, 0. A change here
// changes every job's initial values.
class VariableBits {
 public:
  VariableBits(uint64_t seed, absl::string_view name)
      : key_(VariableKey(seed, name)) {}

  // Two numbers in [0, 1), a multiple of 2^-53 each; others for each `draw`.
  struct Pair {
    double first;
    double second;
  };
  Pair Uniforms(uint64_t element, uint32_t draw) const {
    const PhiloxCounter bits =
        Philox4x32({static_cast<uint32_t>(element),
                    static_cast<uint32_t>(element >> 32), draw, 0},
                   key_);
    return {Uniform(bits[0], bits[1]), Uniform(bits[2], bits[3])};
  }

 private:
  static double Uniform(uint32_t low, uint32_t high) {
    const uint64_t bits = uint64_t{high} << 32 | low;
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }

  const PhiloxKey key_;
};

// Box-Muller, one of its two normals.
double Normal(const VariableBits& bits, uint64_t element, uint32_t draw) {
  const auto [u, v] = bits.Uniforms(element, draw);
  return std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v);
}

// Drawn again (1 in 22 is) until it is within ±2.
double TruncatedNormal(const VariableBits& bits, uint64_t element) {
  for (uint32_t draw = 0;; ++draw) {
    const double normal = Normal(bits, element, draw);
    if (std::abs(normal) <= 2) return normal;
  }
}

void FillUniform(const VariableBits& bits, double min, double max,
                 int64_t first, absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const double u = bits.Uniforms(first + i, 0).first;
    out[i] = static_cast<float>(min + u * (max - min));
  }
}

void FillNormal(const VariableBits& bits, double mean, double stddev,
                int64_t first, absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(mean + stddev * Normal(bits, first + i, 0));
  }
}

void FillTruncatedNormal(const VariableBits& bits, double stddev, int64_t first,
                         absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(stddev * TruncatedNormal(bits, first + i));
  }
}

// Most elements of an orthogonal matrix, which takes seconds then.
constexpr int64_t kMaxOrthogonal = 1 << 24;

// A matrix [all axes but the last, last axis], of which each part computes the
// whole.
absl::Status FillOrthogonal(const VariableBits& bits,
                            absl::Span<const int64_t> shape, int64_t first,
                            absl::Span<float> out) {
  if (shape.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("orthogonal: shape ", ShapeText(shape), " is no matrix"));
  }
  int64_t rows = 1;
  for (const int64_t size : shape.first(shape.size() - 1)) rows *= size;
  if (rows * shape.back() > kMaxOrthogonal) {
    return absl::InvalidArgumentError(
        absl::StrCat("orthogonal: shape ", ShapeText(shape), " has more than ",
                     kMaxOrthogonal, " elements: choose glorot_uniform {}"));
  }
  if (out.empty()) return absl::OkStatus();
  const std::vector<double> matrix = OrthogonalMatrix(
      rows, shape.back(),
      [&bits](int64_t element) { return Normal(bits, element, 0); });
  std::copy_n(matrix.begin() + first, out.size(), out.begin());
  return absl::OkStatus();
}

// The second of the four gates that a row of biases has.
absl::Status FillUnitForget(absl::Span<const int64_t> shape, int64_t first,
                            absl::Span<float> out) {
  if (shape.size() != 1 || shape[0] % 4 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("unit_forget: shape ", ShapeText(shape),
                     " is not that of an lstm's bias"));
  }
  const int64_t units = shape[0] / 4;
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t element = first + static_cast<int64_t>(i);
    out[i] = element >= units && element < 2 * units ? 1 : 0;
  }
  return absl::OkStatus();
}

absl::Status CheckElements(absl::Span<const int64_t> shape, int64_t first,
                           int64_t count) {
  int64_t total = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(total, size, &total)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeText(shape), " is not a variable's"));
    }
  }
  if (first >= 0 && first <= total && count <= total - first) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("elements [", first, ", ", first, " + ", count,
                   ") are not in shape ", ShapeText(shape)));
}

}  // namespace

absl::Status Initialize(const job::Initializer& initializer, uint64_t seed,
                        absl::string_view name, absl::Span<const int64_t> shape,
                        int64_t first, absl::Span<float> out) {
  RETURN_IF_ERROR(CheckElements(shape, first, static_cast<int64_t>(out.size())))
      << "initializer of " << name;
  job::Initializer filled = initializer;
  FillInitializer(filled);
  RETURN_IF_ERROR(CheckInitializer(filled)) << "initializer of " << name;
  const VariableBits bits(seed, name);
  const Fans fans = FansOf(shape);
  switch (filled.kind_case()) {
    case job::Initializer::kZeros:
      std::fill(out.begin(), out.end(), 0.f);
      return absl::OkStatus();
    case job::Initializer::kConstant:
      std::fill(out.begin(), out.end(), filled.constant().value());
      return absl::OkStatus();
    case job::Initializer::kGlorotUniform: {
      const double limit = std::sqrt(6 / std::max(1., fans.in + fans.out));
      FillUniform(bits, -limit, limit, first, out);
      return absl::OkStatus();
    }
    case job::Initializer::kHeNormal:
      FillTruncatedNormal(
          bits, std::sqrt(2 / std::max(1., fans.in)) / kTruncatedStddev, first,
          out);
      return absl::OkStatus();
    case job::Initializer::kRandomNormal:
      FillNormal(bits, filled.random_normal().mean(),
                 filled.random_normal().stddev(), first, out);
      return absl::OkStatus();
    case job::Initializer::kRandomUniform:
      FillUniform(bits, filled.random_uniform().minval(),
                  filled.random_uniform().maxval(), first, out);
      return absl::OkStatus();
    case job::Initializer::kOrthogonal:
      RETURN_IF_ERROR(FillOrthogonal(bits, shape, first, out))
          << "initializer of " << name;
      return absl::OkStatus();
    case job::Initializer::kUnitForget:
      RETURN_IF_ERROR(FillUnitForget(shape, first, out))
          << "initializer of " << name;
      return absl::OkStatus();
    case job::Initializer::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("initializer of ", name, " is not set"));
}

}  // namespace parasol

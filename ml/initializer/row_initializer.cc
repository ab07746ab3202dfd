#include "ml/initializer/row_initializer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/compression/half_bits.h"
#include "ml/initializer/fans.h"
#include "ml/initializer/initializer.h"
#include "ml/initializer/initializer_fields.h"
#include "ml/initializer/variable_key.h"

namespace parasol {
namespace {

// Columns that one Philox counter serves.
constexpr size_t kColumns = 4;

using Draws = std::array<double, kColumns>;

PhiloxCounter Bits(PhiloxKey key, uint64_t id, size_t first_column,
                   uint32_t draw) {
  return Philox4x32({static_cast<uint32_t>(id), static_cast<uint32_t>(id >> 32),
                     static_cast<uint32_t>(first_column / kColumns), draw},
                    key);
}

double Uniform(uint32_t bits) { return bits * 0x1p-32; }

// Box-Muller, both normals of each pair.
Draws Normals(const PhiloxCounter& bits) {
  Draws normals;
  for (size_t i = 0; i < kColumns; i += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform(bits[i])));
    const double angle = 2 * std::numbers::pi * Uniform(bits[i + 1]);
    normals[i] = radius * std::cos(angle);
    normals[i + 1] = radius * std::sin(angle);
  }
  return normals;
}

// Each drawn again (1 in 22 is) until it is within ±2.
Draws TruncatedNormals(PhiloxKey key, uint64_t id, size_t first_column) {
  Draws normals = Normals(Bits(key, id, first_column, 0));
  const auto within = [](double normal) { return std::abs(normal) <= 2; };
  for (uint32_t draw = 1; !std::all_of(normals.begin(), normals.end(), within);
       ++draw) {
    const Draws again = Normals(Bits(key, id, first_column, draw));
    for (size_t i = 0; i < kColumns; ++i) {
      if (!within(normals[i])) normals[i] = again[i];
    }
  }
  return normals;
}

}  // namespace

absl::StatusOr<RowInitializer> RowInitializer::Create(
    const job::Initializer& initializer, uint64_t seed, absl::string_view table,
    size_t width, job::SparseTable::Values values) {
  // Takes the parameters that a variable's has.
  RETURN_IF_ERROR(Initialize(initializer, seed, table, {}, 0, {}));
  job::Initializer filled = initializer;
  FillInitializer(filled);
  RowInitializer rows(VariableKey(seed, table), width);
  rows.rounds_ = values == job::SparseTable::BFLOAT16;
  const Fans fans = FansOf({1, static_cast<int64_t>(width)});
  const auto set = [&rows](Kind kind, double offset, double scale) {
    rows.kind_ = kind;
    rows.offset_ = offset;
    rows.scale_ = scale;
    return rows;
  };
  switch (initializer.kind_case()) {
    case job::Initializer::kZeros:
      return set(Kind::kConstant, 0, 0);
    case job::Initializer::kConstant:
      return set(Kind::kConstant, initializer.constant().value(), 0);
    case job::Initializer::kGlorotUniform: {
      const double limit = std::sqrt(6 / std::max(1., fans.in + fans.out));
      return set(Kind::kUniform, -limit, 2 * limit);
    }
    case job::Initializer::kHeNormal:
      return set(Kind::kTruncatedNormal, 0,
                 std::sqrt(2 / std::max(1., fans.in)) / kTruncatedStddev);
    case job::Initializer::kRandomNormal: {
      const job::RandomNormal& normal = filled.random_normal();
      return set(Kind::kNormal, normal.mean(), normal.stddev());
    }
    case job::Initializer::kRandomUniform: {
      const job::RandomUniform& uniform = filled.random_uniform();
      const double min = uniform.minval();
      return set(Kind::kUniform, min, uniform.maxval() - min);
    }
    case job::Initializer::kOrthogonal:
    case job::Initializer::kUnitForget:
      return absl::InvalidArgumentError(absl::StrCat(
          "initializer of ", table, " is for a variable, not for rows"));
    case job::Initializer::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("initializer of ", table, " is not set"));
}

void RowInitializer::Fill(uint64_t id, float* values) const {
  FillExactly(id, values);
  if (!rounds_) return;
  for (size_t i = 0; i < width_; ++i) {
    values[i] = FloatFromBfloat16(Bfloat16FromFloat(values[i]));
  }
}

void RowInitializer::FillExactly(uint64_t id, float* values) const {
  switch (kind_) {
    case Kind::kConstant:
      std::fill_n(values, width_, static_cast<float>(offset_));
      return;
    case Kind::kUniform:
      return FillUniform(id, values);
    case Kind::kNormal:
    case Kind::kTruncatedNormal:
      return FillNormal(id, values);
  }
}

void RowInitializer::FillUniform(uint64_t id, float* values) const {
  for (size_t first = 0; first < width_; first += kColumns) {
    const PhiloxCounter bits = Bits(key_, id, first, 0);
    const size_t count = std::min(kColumns, width_ - first);
    for (size_t i = 0; i < count; ++i) {
      values[first + i] =
          static_cast<float>(offset_ + scale_ * Uniform(bits[i]));
    }
  }
}

void RowInitializer::FillNormal(uint64_t id, float* values) const {
  for (size_t first = 0; first < width_; first += kColumns) {
    const Draws normals = kind_ == Kind::kNormal
                              ? Normals(Bits(key_, id, first, 0))
                              : TruncatedNormals(key_, id, first);
    const size_t count = std::min(kColumns, width_ - first);
    for (size_t i = 0; i < count; ++i) {
      values[first + i] = static_cast<float>(offset_ + scale_ * normals[i]);
    }
  }
}

}  // namespace parasol

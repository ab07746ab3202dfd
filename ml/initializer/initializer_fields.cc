#include "ml/initializer/initializer_fields.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

bool IsChosen(const job::Initializer& initializer) {
  return initializer.kind_case() != job::Initializer::KIND_NOT_SET;
}

}  // namespace

void FillInitializer(job::Initializer& initializer) {
  switch (initializer.kind_case()) {
    case job::Initializer::kConstant:
      PARASOL_SET_DEFAULT(*initializer.mutable_constant(), value, 0.0f);
      break;
    case job::Initializer::kRandomNormal:
      PARASOL_SET_DEFAULT(*initializer.mutable_random_normal(), mean, 0.0f);
      PARASOL_SET_DEFAULT(*initializer.mutable_random_normal(), stddev, 0.05f);
      break;
    case job::Initializer::kRandomUniform:
      PARASOL_SET_DEFAULT(*initializer.mutable_random_uniform(), minval,
                          -0.05f);
      PARASOL_SET_DEFAULT(*initializer.mutable_random_uniform(), maxval, 0.05f);
      break;
    case job::Initializer::kZeros:
    case job::Initializer::kGlorotUniform:
    case job::Initializer::kHeNormal:
    case job::Initializer::kOrthogonal:
    case job::Initializer::kUnitForget:
    case job::Initializer::KIND_NOT_SET:
      break;
  }
}

void FillKernelInitializer(job::Initializer& initializer) {
  if (!IsChosen(initializer)) initializer.mutable_glorot_uniform();
  FillInitializer(initializer);
}

void FillBiasInitializer(job::Initializer& initializer) {
  if (!IsChosen(initializer)) initializer.mutable_zeros();
  FillInitializer(initializer);
}

absl::Status CheckInitializer(const job::Initializer& initializer) {
  switch (initializer.kind_case()) {
    case job::Initializer::kConstant:
      return RequireFinite("constant.value", initializer.constant().value());
    case job::Initializer::kRandomNormal: {
      const job::RandomNormal& normal = initializer.random_normal();
      RETURN_IF_ERROR(RequireFinite("random_normal.mean", normal.mean()));
      return RequireAtLeastZero("random_normal.stddev", normal.stddev());
    }
    case job::Initializer::kRandomUniform: {
      const job::RandomUniform& uniform = initializer.random_uniform();
      RETURN_IF_ERROR(RequireFinite("random_uniform.minval", uniform.minval()));
      RETURN_IF_ERROR(RequireFinite("random_uniform.maxval", uniform.maxval()));
      // The draw scales by the difference.
      if (uniform.minval() <= uniform.maxval() &&
          std::isfinite(uniform.maxval() - uniform.minval())) {
        return absl::OkStatus();
      }
      return Fault("random_uniform",
                   absl::StrCat("minval ", uniform.minval(), " and maxval ",
                                uniform.maxval(),
                                ": maxval must be at least minval, and their "
                                "difference finite"));
    }
    case job::Initializer::kZeros:
    case job::Initializer::kGlorotUniform:
    case job::Initializer::kHeNormal:
    case job::Initializer::kOrthogonal:
    case job::Initializer::kUnitForget:
      return absl::OkStatus();
    case job::Initializer::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "no initializer is chosen: zeros, constant, random_normal, "
      "random_uniform, glorot_uniform, he_normal, orthogonal or unit_forget");
}

absl::Status CheckKernelInitializer(const job::Initializer& initializer) {
  RETURN_IF_ERROR(CheckInitializer(initializer));
  if (!initializer.has_unit_forget()) return absl::OkStatus();
  return Fault("unit_forget", "it is for the bias of an lstm alone");
}

absl::Status CheckBiasInitializer(const job::Initializer& initializer) {
  RETURN_IF_ERROR(CheckInitializer(initializer));
  if (initializer.has_unit_forget()) {
    return Fault("unit_forget", "it is for the bias of an lstm alone");
  }
  if (!initializer.has_orthogonal()) return absl::OkStatus();
  return Fault("orthogonal", "it is for a matrix, not for a bias");
}

}  // namespace parasol

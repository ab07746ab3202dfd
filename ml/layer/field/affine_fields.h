#ifndef PARASOL_ML_LAYER_FIELD_AFFINE_FIELDS_H_
#define PARASOL_ML_LAYER_FIELD_AFFINE_FIELDS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/initializer/initializer_fields.h"
#include "proto/job.pb.h"

namespace parasol {

// Sets the unset ones of the fields that layers with a kernel and a bias have
// in common.
template <typename Affine>
void FillProduct(Affine& affine) {
  PARASOL_SET_DEFAULT(affine, use_bias, true);
  FillKernelInitializer(*affine.mutable_kernel_initializer());
  FillBiasInitializer(*affine.mutable_bias_initializer());
  PARASOL_SET_DEFAULT(affine, kernel_l2, 0);
  PARASOL_SET_DEFAULT(affine, bias_l2, 0);
}

// Sets the unset ones of the fields that dense and conv2d have in common.
template <typename Affine>
void FillAffine(Affine& affine) {
  FillProduct(affine);
  PARASOL_SET_DEFAULT(affine, activation, job::ACTIVATION_UNSPECIFIED);
}

// Checks the ranges of the fields that FillProduct() sets.
//   InvalidArgument  "<path>.<field>: …", with the value.
template <typename Affine>
absl::Status CheckProduct(const std::string& path, const Affine& affine) {
  RETURN_IF_ERROR(CheckKernelInitializer(affine.kernel_initializer()))
      << path << ".kernel_initializer";
  RETURN_IF_ERROR(CheckBiasInitializer(affine.bias_initializer()))
      << path << ".bias_initializer";
  RETURN_IF_ERROR(
      RequireAtLeastZero(absl::StrCat(path, ".kernel_l2"), affine.kernel_l2()));
  return RequireAtLeastZero(absl::StrCat(path, ".bias_l2"), affine.bias_l2());
}

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_FIELD_AFFINE_FIELDS_H_

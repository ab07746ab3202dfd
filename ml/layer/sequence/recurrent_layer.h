#ifndef PARASOL_ML_LAYER_SEQUENCE_RECURRENT_LAYER_H_
#define PARASOL_ML_LAYER_SEQUENCE_RECURRENT_LAYER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/initializer/initializer_fields.h"
#include "ml/layer/layer.h"
#include "ml/layer/sequence/recurrent_direction.h"
#include "proto/job.pb.h"

namespace parasol {

// A variable of each direction: its initializer and its l2.
struct RecurrentVariable {
  job::Initializer initializer = {};
  double l2 = 0;
};

// Settings that an lstm and a gru have in common.
struct RecurrentForm {
  RecurrentCell cell = RecurrentCell::kLstm;
  int64_t units = 0;
  bool return_sequences = false;
  bool go_backwards = false;
  job::Bidirectional::Merge merge = job::Bidirectional::ONE_DIRECTION;
  bool has_bias = true;
  RecurrentVariable kernel;
  RecurrentVariable recurrent_kernel;
  RecurrentVariable bias;
};

// Returns the form of an lstm or a gru whose fields are filled.
template <typename Recurrent>
RecurrentForm FormOf(RecurrentCell cell, const Recurrent& spec) {
  return {
      .cell = cell,
      .units = spec.units(),
      .return_sequences = spec.return_sequences(),
      .go_backwards = spec.go_backwards(),
      .merge = spec.bidirectional(),
      .has_bias = spec.use_bias(),
      .kernel = {spec.kernel_initializer(), spec.kernel_l2()},
      .recurrent_kernel = {spec.recurrent_initializer(), spec.recurrent_l2()},
      .bias = {spec.bias_initializer(), spec.bias_l2()}};
}

// Sets the unset fields that both kinds have, but for the bias's initializer.
template <typename Recurrent>
void FillRecurrent(Recurrent& spec) {
  PARASOL_SET_DEFAULT(spec, return_sequences, false);
  PARASOL_SET_DEFAULT(spec, go_backwards, false);
  PARASOL_SET_DEFAULT(spec, bidirectional, job::Bidirectional::ONE_DIRECTION);
  PARASOL_SET_DEFAULT(spec, use_bias, true);
  FillKernelInitializer(*spec.mutable_kernel_initializer());
  if (spec.recurrent_initializer().kind_case() ==
      job::Initializer::KIND_NOT_SET) {
    spec.mutable_recurrent_initializer()->mutable_orthogonal();
  }
  FillInitializer(*spec.mutable_recurrent_initializer());
  PARASOL_SET_DEFAULT(spec, kernel_l2, 0);
  PARASOL_SET_DEFAULT(spec, recurrent_l2, 0);
  PARASOL_SET_DEFAULT(spec, bias_l2, 0);
}

// Checks the ranges of these fields.
//   InvalidArgument  "<path>.<field>: …", with the value.
template <typename Recurrent>
absl::Status CheckRecurrent(const std::string& path, const Recurrent& spec) {
  const std::string units = absl::StrCat(path, ".units");
  if (!spec.has_units()) return Missing(units);
  RETURN_IF_ERROR(RequireInRange(units, spec.units(), 1, kMaxInt));
  if (spec.go_backwards() &&
      spec.bidirectional() != job::Bidirectional::ONE_DIRECTION) {
    return Fault(absl::StrCat(path, ".go_backwards"),
                 "true, but bidirectional has both directions: leave it out");
  }
  RETURN_IF_ERROR(CheckKernelInitializer(spec.kernel_initializer()))
      << path << ".kernel_initializer";
  RETURN_IF_ERROR(CheckKernelInitializer(spec.recurrent_initializer()))
      << path << ".recurrent_initializer";
  RETURN_IF_ERROR(
      RequireAtLeastZero(absl::StrCat(path, ".kernel_l2"), spec.kernel_l2()));
  RETURN_IF_ERROR(RequireAtLeastZero(absl::StrCat(path, ".recurrent_l2"),
                                     spec.recurrent_l2()));
  return RequireAtLeastZero(absl::StrCat(path, ".bias_l2"), spec.bias_l2());
}

// Returns the layer for inputs [steps, channels] and, if there are two, a mask
// [steps].
//   InvalidArgument  the inputs have other shapes, or are too large.
absl::StatusOr<std::unique_ptr<const Layer>> MakeRecurrent(
    const RecurrentForm& form, absl::Span<const LayerInput> inputs);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_SEQUENCE_RECURRENT_LAYER_H_

#include "ml/loss/binary_focal_crossentropy.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/kernel/loss/elementwise_loss.h"
#include "ml/loss/crossentropy_fields.h"

namespace parasol {
namespace {

// Above this, a probability of 1/2 has hardly any loss left in float32.
constexpr double kMaxGamma = 64;

void FillDefaults(job::BinaryFocalCrossentropy& spec) {
  PARASOL_SET_DEFAULT(spec, gamma, 2.0);
  PARASOL_SET_DEFAULT(spec, label_smoothing, 0.0);
}

absl::Status CheckRanges(const std::string& path,
                         const job::BinaryFocalCrossentropy& spec) {
  RETURN_IF_ERROR(RequireBetween(absl::StrCat(path, ".gamma"), spec.gamma(),
                                 0.0, kMaxGamma));
  if (spec.has_alpha()) {
    RETURN_IF_ERROR(
        RequireBetween(absl::StrCat(path, ".alpha"), spec.alpha(), 0.0, 1.0));
  }
  return CheckSmoothing(path, spec.label_smoothing());
}

FocalTerm TermOf(const job::BinaryFocalCrossentropy& spec) {
  return {
      .gamma = static_cast<float>(spec.gamma()),
      .of_one = spec.has_alpha() ? static_cast<float>(spec.alpha()) : 1,
      .of_zero = spec.has_alpha() ? static_cast<float>(1 - spec.alpha()) : 1,
      .smoothing = static_cast<float>(spec.label_smoothing())};
}

}  // namespace

constinit const LossKind kBinaryFocalCrossentropyKind = {
    .field = job::Loss::kBinaryFocalCrossentropy,
    .fill_defaults =
        [](job::Loss& loss) {
          FillDefaults(*loss.mutable_binary_focal_crossentropy());
        },
    .check =
        [](const std::string& path, const job::Loss& loss) {
          return CheckRanges(path, loss.binary_focal_crossentropy());
        },
    .label =
        [](int64_t outputs) {
          return LabelForm{.kind = LabelForm::Kind::kNumbers,
                           .width = outputs,
                           .is_probability = true};
        },
    .compute =
        [](Device& device, const job::Loss& loss, const LossBatch& batch,
           const LossResult& out) {
          return ElementwiseLoss(device, batch,
                                 TermOf(loss.binary_focal_crossentropy()), out);
        },
};

}  // namespace parasol

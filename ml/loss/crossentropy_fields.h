#ifndef PARASOL_ML_LOSS_CROSSENTROPY_FIELDS_H_
#define PARASOL_ML_LOSS_CROSSENTROPY_FIELDS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "proto/job.pb.h"

namespace parasol {

// Sets the unset fields of a cross-entropy.
inline void FillDefaults(job::CrossEntropy& spec) {
  PARASOL_SET_DEFAULT(spec, label_smoothing, 0.0);
}

// Checks that the label_smoothing of the message at `path` is in [0, 1).
//   InvalidArgument  "<path>.label_smoothing: …", with the value.
inline absl::Status CheckSmoothing(const std::string& path, double smoothing) {
  if (smoothing >= 0 && smoothing < 1) return absl::OkStatus();
  return Fault(absl::StrCat(path, ".label_smoothing"),
               absl::StrCat(smoothing, " is not at least 0 and below 1"));
}

inline absl::Status CheckRanges(const std::string& path,
                                const job::CrossEntropy& spec) {
  return CheckSmoothing(path, spec.label_smoothing());
}

// Does the same for a cross-entropy over classes, whose outputs are logits.
//   InvalidArgument  "<path>.from_logits: …" if they are said to be none.
inline absl::Status CheckOfClasses(const std::string& path,
                                   const job::CrossEntropy& spec) {
  if (spec.from_logits()) return CheckRanges(path, spec);
  return Fault(absl::StrCat(path, ".from_logits"),
               "false is for binary_crossentropy alone; remove it, and a "
               "softmax before the output");
}

// Checks that a model's outputs can be classes, one for each.
//   InvalidArgument  "<path>: …", with the number of outputs.
inline absl::Status CheckClasses(const std::string& path, int64_t outputs) {
  // Class numbers come as float32, which holds all integers up to here.
  constexpr int64_t kMaxClasses = int64_t{1} << 24;
  if (outputs >= 2 && outputs <= kMaxClasses) return absl::OkStatus();
  return Fault(path, absl::StrCat("the model has ", outputs,
                                  " outputs, one for each class, which is "
                                  "not in 2 to ",
                                  kMaxClasses));
}

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_CROSSENTROPY_FIELDS_H_

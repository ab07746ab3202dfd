#ifndef PARASOL_ML_INPUT_FORMAT_LABEL_RULE_H_
#define PARASOL_ML_INPUT_FORMAT_LABEL_RULE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/feature/value.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns true if a file's `value` is the `text` of a job. Values have lost the
// blanks around them, unless these are in quotes: a job's text may have them
// all the same.
bool IsJobText(absl::string_view value, absl::string_view text);

// The rule that makes a label of a column's value. Thread-safe.
class LabelRule {
 public:
  explicit LabelRule(const job::CsvLabel& spec);

  // Returns 1 for a text of `positive` and 0 for another; or the number of a
  // class; or, without both, the number that the text is.
  //   DataLoss  the text is no class, or no number.
  absl::StatusOr<double> NumberOf(absl::string_view value) const;

  // Appends the label that an example's values of the column make: one, or as
  // many numbers as the loss wants.
  //   DataLoss  another number of values, or one that is no label.
  absl::Status Append(const LabelForm& form,
                      const std::vector<FieldValue>& values,
                      std::vector<float>& labels) const;

 private:
  const job::CsvLabel spec_;
  absl::flat_hash_map<std::string, double> classes_;
};

// Returns the only one of `values`, as a number; `what` names it in errors.
//   DataLoss  there is none, or several, or it is not a finite number.
absl::StatusOr<double> OnlyNumber(const std::vector<FieldValue>& values,
                                  absl::string_view what);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_LABEL_RULE_H_

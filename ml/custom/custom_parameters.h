#ifndef PARASOL_ML_CUSTOM_CUSTOM_PARAMETERS_H_
#define PARASOL_ML_CUSTOM_CUSTOM_PARAMETERS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "proto/job.pb.h"

namespace parasol {

// The parameters that a job gives to a part that its user has written. A part
// reads each by name, then calls CheckAllRead(), which refuses names that it
// does not know. The first fault is kept and returned there:
//
//   CustomParameters parameters(spec.parameter());
//   const double tau = parameters.Number("tau", .5, 0, 1);
//   RETURN_IF_ERROR(parameters.CheckAllRead());
//
// All errors are InvalidArgument and name the parameter and its value.
class CustomParameters {
 public:
  explicit CustomParameters(
      const google::protobuf::RepeatedPtrField<job::CustomParameter>&
          parameters);

  // Returns the value of a parameter, or `fallback` if the job does not give
  // it.
  std::string Text(absl::string_view name, absl::string_view fallback);
  // Returns a number from `low` to `high`; `fallback` if there is none, or if
  // it is none, which is a fault.
  double Number(absl::string_view name, double fallback, double low,
                double high);

  // Returns the first fault: a value that is no number in its range, a
  // parameter that is given twice, or one that was not read.
  absl::Status CheckAllRead() const;

 private:
  const std::string* Find(absl::string_view name);

  std::vector<std::pair<std::string, std::string>> values_;
  std::vector<std::string> read_;
  absl::Status fault_;
};

}  // namespace parasol

#endif  // PARASOL_ML_CUSTOM_CUSTOM_PARAMETERS_H_

#ifndef PARASOL_WORKER_HOST_VARIABLES_H_
#define PARASOL_WORKER_HOST_VARIABLES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"
#include "worker/local_variables.h"

namespace parasol {

// A lone worker's variables in host memory.
class HostVariables : public LocalVariables {
 public:
  // Creates the variables, without their initial values.
  //   InvalidArgument  the job's optimizer can't be used.
  static absl::StatusOr<std::unique_ptr<HostVariables>> Create(
      std::vector<VariableSpec> specs, const job::Job& job);

  absl::StatusOr<absl::Span<const float>> Read(size_t variable,
                                               int array) override;
  absl::Status Write(size_t variable, int array,
                     absl::Span<const float> elements) override;
  // Updates a variable by a gradient with as many elements.
  void Apply(size_t variable, absl::Span<const float> gradient);

 private:
  using LocalVariables::LocalVariables;

  // All arrays of each variable.
  std::vector<std::vector<std::vector<float>>> arrays_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_HOST_VARIABLES_H_

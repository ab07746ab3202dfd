#ifndef PARASOL_WORKER_STORE_HOST_VARIABLES_H_
#define PARASOL_WORKER_STORE_HOST_VARIABLES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"
#include "worker/store/stored_variables.h"

namespace parasol {

// A worker's variables in host memory.
class HostVariables : public StoredVariables {
 public:
  // Creates the variables, without their initial values.
  //   InvalidArgument  the job's optimizer can't be used.
  static absl::StatusOr<std::unique_ptr<HostVariables>> Create(
      std::vector<VariableSpec> specs, const job::Job& job);
  // Creates the same variables as `other` has, with its optimizers: arrays of
  // zeros.
  static std::unique_ptr<HostVariables> CreateLike(
      const StoredVariables& other);

  absl::StatusOr<absl::Span<const float>> Read(size_t variable,
                                               int array) override;
  absl::Status Write(size_t variable, int array,
                     absl::Span<const float> elements) override;
  // Updates some elements of a variable, from `first` on, by their gradient.
  // The update is complete when all elements were updated and CountUpdate() was
  // called. Threads may update different elements at once. An optimizer that
  // needs a whole variable gets all of it in one call.
  void Apply(size_t variable, size_t first, absl::Span<const float> gradient);
  using StoredVariables::CountUpdate;
  // Goes on with the job's optimizers, which differ from those before in their
  // learning rates alone.
  //   InvalidArgument  one can't be used.
  absl::Status UseOptimizers(const job::Job& job) {
    return MakeOptimizers(job);
  }

 private:
  using StoredVariables::StoredVariables;
  void Allocate();

  // All arrays of each variable.
  std::vector<std::vector<std::vector<float>>> arrays_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_HOST_VARIABLES_H_

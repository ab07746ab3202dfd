#ifndef PARASOL_WORKER_STORE_STORED_VARIABLES_H_
#define PARASOL_WORKER_STORE_STORED_VARIABLES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/variable_spec.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// The variables that a worker updates itself, wherever they lie: values,
// slots and numbers of updates. Variables are numbered as in the model, arrays
// as in checkpoints: the value (kValueArray), then the slots. Not thread-safe.
class StoredVariables {
 public:
  virtual ~StoredVariables() = default;

  const std::vector<VariableSpec>& specs() const { return specs_; }
  // The variable's own optimizer or the job's, as it is for the variable
  // (VariableOptimizerOf()), or for variables that are not trained
  // PlainSubtraction(). Variables whose optimizers are equal share one.
  const Optimizer& optimizer(size_t variable) const {
    return *optimizers_[variable];
  }
  int num_arrays(size_t variable) const {
    return 1 + static_cast<int>(optimizer(variable).slot_names().size());
  }
  // The number of updates that each variable has had.
  absl::Span<const int64_t> updates() const { return updates_; }
  void SetUpdates(size_t variable, int64_t updates) {
    updates_[variable] = updates;
  }

  // Gives all arrays their initial values. No variable has had updates then.
  //   InvalidArgument  an initializer can't be used.
  //   any other        as for Write().
  absl::Status Initialize(uint64_t seed);

  // Exchanges the values and the moving averages of all variables that have
  // averages and have had updates. A second call restores them. Returns errors
  // of Read() and Write().
  absl::Status SwapAverages();

  // Returns the elements of one array as they are after all updates so far.
  // Valid until the next call.
  //   Unavailable  the device was lost.
  virtual absl::StatusOr<absl::Span<const float>> Read(size_t variable,
                                                       int array) = 0;
  // Makes `elements` the elements of one array. Returns errors of Read().
  virtual absl::Status Write(size_t variable, int array,
                             absl::Span<const float> elements) = 0;

 protected:
  explicit StoredVariables(std::vector<VariableSpec> specs);
  // Makes the optimizers, before all else, or anew for another learning rate.
  //   InvalidArgument  the job's can't be used.
  absl::Status MakeOptimizers(const job::Job& job);
  // Shares the optimizers of the same variables elsewhere.
  void UseOptimizersOf(const StoredVariables& other) {
    optimizers_ = other.optimizers_;
  }
  // Takes optimizers that were made elsewhere, one for each variable.
  void SetOptimizers(std::vector<std::shared_ptr<const Optimizer>> optimizers) {
    optimizers_ = std::move(optimizers);
  }
  void CountUpdate(size_t variable) { ++updates_[variable]; }

 private:
  const std::vector<VariableSpec> specs_;
  std::vector<std::shared_ptr<const Optimizer>> optimizers_;
  std::vector<int64_t> updates_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_STORED_VARIABLES_H_

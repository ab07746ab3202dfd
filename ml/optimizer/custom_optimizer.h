#ifndef PARASOL_ML_OPTIMIZER_CUSTOM_OPTIMIZER_H_
#define PARASOL_ML_OPTIMIZER_CUSTOM_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

// Optimizers that users write (docs/examples/custom_model). The job declares
// the slots, so that the chief, which lists them in checkpoints, needs none of
// the code. The programs that have variables are linked with it: the ps, and
// the worker if there are no ps or it has the variables.
namespace parasol {

// The rule of an optimizer of a user's own. Immutable, thread-safe.
class CustomUpdate {
 public:
  // An array beside the values, whose elements begin with `initial_value`.
  struct Slot {
    std::string name;
    float initial_value = 0;
  };

  // Elements that are updated in place. No array overlaps another one.
  struct Elements {
    size_t count = 0;
    const float* gradient = nullptr;  // clipped, if the job says so
    float* value = nullptr;
    absl::Span<float* const> slots;  // one array for each of slots()
  };

  // Numbers that an update depends on beside the elements.
  struct Step {
    // Number of updates that the elements have had: 0 at the first one.
    int64_t iterations = 0;
    // The job's learning rate, after its schedule and its factors.
    double learning_rate = 0;
  };

  virtual ~CustomUpdate() = default;

  // Returns the slots, at most kMaxCustomSlots, which the job declares in this
  // order.
  virtual std::vector<Slot> slots() const = 0;

  // Returns what becomes of rows of a table that a gradient does not have.
  virtual Optimizer::OtherRows other_rows() const {
    return Optimizer::OtherRows::kUntouched;
  }

  // Applies one gradient. Each element's result must depend on this element
  // alone: a variable is updated in ranges of any length, on several threads
  // and processes.
  virtual void Apply(const Step& step, const Elements& elements) const = 0;
};

constexpr int kMaxCustomSlots = 8;

// A function that makes the rule with the parameters of `spec`.
//   InvalidArgument  the parameters do not suit it: says why.
using CustomOptimizerFactory =
    std::function<absl::StatusOr<std::unique_ptr<const CustomUpdate>>(
        const job::CustomOptimizer& spec)>;

// Registers an optimizer in this program as `type`, at namespace scope of its
// own file:
//
//   const CustomOptimizerRegistration kRegistration("yogi", MakeYogi);
//
// Two optimizers of one type are a bug. Only for use before main().
class CustomOptimizerRegistration {
 public:
  CustomOptimizerRegistration(absl::string_view type,
                              CustomOptimizerFactory factory);
};

// Returns the optimizer that `spec` declares, whether or not this program has
// its code: Optimizer::CheckCode() says so. One without code knows its slots,
// and changes no values. All updates are made in the host's memory.
//   InvalidArgument  the declaration is not complete, the code refuses the
//                    parameters, or it has other slots than are declared:
//                    "custom.<field> …".
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeCustomOptimizer(
    const job::CustomOptimizer& spec,
    const job::LearningRateSchedule& schedule);

// Sets an unset learning_rate to .001 and unset initial values to 0.
void FillDefaults(job::CustomOptimizer& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_CUSTOM_OPTIMIZER_H_

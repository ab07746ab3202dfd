#ifndef PARASOL_ML_OPTIMIZER_OPTIMIZER_H_
#define PARASOL_ML_OPTIMIZER_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace parasol {

// The elements that one update touches. All arrays have `count` elements and
// overlap only where it says so. Owned by the caller.
struct UpdateSpan {
  size_t count = 0;
  // float32 in the machine's byte order, at any alignment: where the socket's
  // buffer happens to have it.
  const std::byte* gradient = nullptr;
  // Values before the update, and where those after it go. May be the same
  // array (an update in place); otherwise they don't overlap, and `value` keeps
  // what a pull that is being sent still reads.
  const float* value = nullptr;
  float* new_value = nullptr;
  // As many as slot_names(), updated in place. `slots[i]` has `count` elements.
  absl::Span<float* const> slots;
};

// How a gradient changes a value. Owns no memory: it works on spans of a table
// that owns values and slots. Formulas and defaults are those of Keras
// optimizer_v2, TensorFlow 2.10. Immutable; thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One slot array per name, each of the variable's size.
  virtual const std::vector<std::string>& slot_names() const = 0;

  // What slot `index` holds before the first update.
  virtual float InitialSlotValue(size_t index) const = 0;

  // Applies one gradient. `iterations` is the number of updates that these
  // elements have had (0 at the first one): the learning rate may depend on it.
  virtual void Apply(int64_t iterations, const UpdateSpan& update) const = 0;
};

// The optimizer that a job names, with Keras's defaults for what is not set.
//   InvalidArgument  none chosen, or a hyperparameter out of range: names it.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(
    const job::Optimizer& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_OPTIMIZER_H_

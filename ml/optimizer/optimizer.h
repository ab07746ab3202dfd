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

// The rows of a sparse table that one gradient touches, updated in place. Owned
// by the caller.
struct RowUpdate {
  size_t count = 0;
  size_t width = 0;
  // count x width float32 in the machine's byte order, at any alignment: in the
  // order of `rows`.
  const std::byte* gradients = nullptr;
  // Row i: at rows[i], `width` values, then `width` elements of each slot.
  // Distinct.
  float* const* rows = nullptr;
};

// How a gradient changes a value. Owns no memory: it works on spans of a table
// that owns values and slots (apply.h for plain arrays). Formulas and defaults
// are those of Keras optimizer_v2, TensorFlow 2.10. Immutable; thread-safe.
class Optimizer {
 public:
  // How a sparse gradient, one of some rows, changes the rows that are not in
  // it.
  enum class OtherRows {
    kUntouched,
    kSlots,  // their slots change, as a gradient of 0 would do it
    kAll,    // their values too
  };

  virtual ~Optimizer() = default;

  // One slot array per name, each of the variable's size.
  virtual const std::vector<std::string>& slot_names() const = 0;

  // What slot `index` holds before the first update.
  virtual float InitialSlotValue(size_t index) const = 0;

  // Applies one gradient. `iterations` is the number of updates that these
  // elements have had (0 at the first one): the learning rate may depend on it.
  virtual void Apply(int64_t iterations, const UpdateSpan& update) const = 0;

  virtual OtherRows other_rows() const = 0;

  // Apply() for each of some rows, which have had `iterations` updates.
  virtual void ApplyRows(int64_t iterations, const RowUpdate& update) const = 0;

  // What other_rows() says, for each of some rows that the same gradient does
  // not touch. `update.gradients` is not read.
  void ApplyOtherRows(int64_t iterations, const RowUpdate& update) const;
};

// The optimizer that a job names, with Keras's defaults for what is not set.
// Clipping is not its matter (clip.h).
//   InvalidArgument  none chosen, or a hyperparameter out of range:
//                    "<kind>.<field> is <value>; …".
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(
    const job::Optimizer& spec);

// Keras's values for what the chosen optimizer's message does not set.
void FillDefaults(job::Optimizer& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_OPTIMIZER_H_

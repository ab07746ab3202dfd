#ifndef PARASOL_ML_OPTIMIZER_OPTIMIZER_H_
#define PARASOL_ML_OPTIMIZER_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/optimizer/rule/update_rule.h"
#include "proto/job.pb.h"

namespace parasol {

// The elements that one update touches. All arrays have `count` elements, are
// owned by the caller, and overlap only where a field's comment allows it.
struct UpdateSpan {
  size_t count = 0;
  // Gradient as float32 in the machine's byte order, at any alignment, so that
  // it can be read in place from a socket's buffer.
  const std::byte* gradient = nullptr;
  // Arrays of the values before and after the update. They may be the same
  // array (an update in place); otherwise they do not overlap, and `value`
  // stays as it is, for a pull that is still being sent.
  const float* value = nullptr;
  float* new_value = nullptr;
  // One array for each of slot_names(), each of `count` elements, updated in
  // place.
  absl::Span<float* const> slots;
};

// The rows of a sparse table that one gradient touches, updated in place. Owned
// by the caller.
struct RowUpdate {
  size_t count = 0;
  size_t width = 0;
  // Gradients [count, width] in the order of `rows`, as float32 in the
  // machine's byte order, at any alignment.
  const std::byte* gradients = nullptr;
  // Addresses of the rows' gradients, if not null: `width` float32 each, at any
  // alignment; `gradients` is not read then.
  const std::byte* const* gradient_of = nullptr;
  // Addresses of distinct rows. At rows[i] lie `width` values, then each slot's
  // SlotWidth() elements.
  float* const* rows = nullptr;

  // Returns the address of the gradient of row `i`.
  const std::byte* gradient(size_t i) const {
    return gradient_of == nullptr ? gradients + i * width * sizeof(float)
                                  : gradient_of[i];
  }
};

// A rule by which a gradient changes a value. Owns no memory: it works on spans
// of a table that owns values and slots (on plain arrays through apply.h).
// Formulas and defaults come from Keras optimizer_v2, TensorFlow 2.10, unless
// an optimizer's header says otherwise.
// Immutable; thread-safe.
class Optimizer {
 public:
  // Change of the rows that a sparse gradient, which has some rows of a table,
  // does not have.
  enum class OtherRows {
    kUntouched,
    kSlots,  // slots change as by a gradient of 0
    kAll,    // values and slots change
  };

  virtual ~Optimizer() = default;

  // Names of the slots. Each slot is an array of the variable's size; of a
  // table it has SlotWidth() elements for each row.
  virtual const std::vector<std::string>& slot_names() const = 0;

  // Returns the value of every element of slot `index` before the first update.
  virtual float InitialSlotValue(size_t index) const = 0;

  // Returns the number of elements that slot `index` has for a row of `width`
  // values: as many, or 1 that all of them share. Where it is 1, the optimizer
  // is for tables alone (MakeVariableOptimizer()).
  virtual size_t SlotWidth(size_t index, size_t width) const { return width; }

  // Returns the number of elements of a row: its `width` values and its slots.
  size_t FloatsOfRow(size_t width) const;

  // Writes the slots that a row begins with behind its `width` values.
  void FillSlots(size_t width, float* row) const;

  // Returns true if the change of an element depends on all elements of its
  // variable (LAMB): an UpdateSpan must have the whole variable then. So what
  // has variables in parts, or tables in rows, can't use it.
  virtual bool needs_whole_variable() const { return false; }

  // Applies one gradient. `iterations` is the number of updates that these
  // elements have had (0 at the first one): the learning rate may depend on it.
  virtual void Apply(int64_t iterations, const UpdateSpan& update) const = 0;

  // Checks that this program has the optimizer's code: what has variables calls
  // it before it makes any. Without the code only the slots are known.
  //   InvalidArgument  it does not: names the optimizers that it has.
  virtual absl::Status CheckCode() const { return absl::OkStatus(); }

  // Returns the rule that Apply() applies at this number of iterations, for
  // elements that do not lie in the host's memory: a LambRule, in its two
  // parts, if needs_whole_variable(). A custom optimizer has none.
  virtual UpdateRule RuleAt(int64_t iterations) const = 0;

  // Returns the rule that Apply() applies next, to the new values and the last
  // slot alone; nullopt if there is none. RuleAt()'s has the other slots then.
  virtual std::optional<AverageRule> AverageAt(int64_t iterations) const {
    return std::nullopt;
  }

  virtual OtherRows other_rows() const = 0;

  // Calls Apply() for each row of `update`. The rows have had `iterations`
  // updates.
  virtual void ApplyRows(int64_t iterations, const RowUpdate& update) const = 0;

  // Changes each row of `update`, which the gradient does not touch, as
  // other_rows() says. `update.gradients` is not read.
  void ApplyOtherRows(int64_t iterations, const RowUpdate& update) const;
};

// Returns the optimizer that a job names, with Keras's defaults for fields that
// are not set. It does not clip (see clip.h).
//   InvalidArgument  none is chosen, or a hyperparameter is out of range:
//                    "<kind>.<field> is <value>; …".
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(
    const job::Optimizer& spec);

// Sets the unset fields of the chosen optimizer's message to Keras's defaults.
void FillDefaults(job::Optimizer& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_OPTIMIZER_H_

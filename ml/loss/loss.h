#ifndef PARASOL_ML_LOSS_LOSS_H_
#define PARASOL_ML_LOSS_LOSS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/loss/loss_kind.h"
#include "ml/loss/loss_spec.h"

namespace parasol {

// The function that training minimises: a number for each example, computed
// from the model's outputs and the labels of this example, or of all examples
// of its batch. Immutable, thread-safe.
class Loss {
 public:
  // `spec` comes from ResolveLoss().
  explicit Loss(const LossSpec& spec);

  // Number of labels of one example: 1 for a class number.
  int64_t label_width() const { return spec_.label.width; }

  // Checks the labels of `examples` examples.
  //   InvalidArgument  there is another number of labels, or a label that has
  //                    no meaning here: names the example and the value.
  absl::Status CheckLabels(int64_t examples,
                           absl::Span<const float> labels) const;

  // Two functions for a loss that compares the examples of a batch, and that do
  // nothing for others. Compare() makes what Compute() reads of them beside
  // their labels.
  void Compare(const ComparedExamples& examples, Comparison& out) const;
  // Returns the number of elements of Inputs::scratch.
  int64_t ScratchElements(int64_t examples) const;

  // Inputs of a batch, in the device's memory.
  struct Inputs {
    const float* outputs = nullptr;  // [examples, outputs]
    // [examples, label_width()], which CheckLabels() has accepted.
    const float* labels = nullptr;
    const float* weights = nullptr;  // [examples]; null: 1
    int64_t examples = 0;
    // Arrays that Compare() has made; null for an empty one.
    const int32_t* integers = nullptr;
    const float* numbers = nullptr;
    float* scratch = nullptr;  // [ScratchElements()], of any contents
  };

  // Writes `losses` [examples], each times its weight, and unless it is null
  // `gradient` [examples, outputs], the gradient of the mean of `losses`. The
  // mean divides by the number of examples, not by the sum of weights. All
  // arrays are in the device's memory. Enqueues on the compute stream and
  // returns; allocates nothing.
  //   Unavailable         the device was lost.
  //   FailedPrecondition  a gradient is asked for, and this program does not
  //                       have the code of a custom loss. Without a gradient
  //                       the losses are 0 then.
  //   Unimplemented       a custom loss does not run on the device.
  absl::Status Compute(Device& device, const Inputs& inputs, float* losses,
                       float* gradient) const;

 private:
  const LossSpec spec_;
  const LossKind& kind_;
};

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_LOSS_H_

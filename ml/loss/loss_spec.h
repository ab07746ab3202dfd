#ifndef PARASOL_ML_LOSS_LOSS_SPEC_H_
#define PARASOL_ML_LOSS_LOSS_SPEC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/loss/custom_loss.h"
#include "proto/job.pb.h"

namespace parasol {

// A loss together with properties of its model. Needs no device.
struct LossSpec {
  job::Loss loss = {};
  int64_t outputs = 0;   // the model's, for one example
  LabelForm label = {};  // an example's label
  // The code of a custom loss; null: it is no such loss, or this program does
  // not have its code.
  std::shared_ptr<const CustomLoss> custom = nullptr;

  // Name of the loss's kind in a job file: "mean_squared_error".
  const std::string& name() const;
  // True if an output is a probability itself, where labels are such.
  bool has_probabilities() const {
    return loss.has_binary_crossentropy() &&
           !loss.binary_crossentropy().from_logits();
  }
  // False if only the code of a custom loss, which this program does not have,
  // knows the form of labels. `label` is then without meaning.
  bool label_is_known() const {
    return !loss.has_custom() || custom != nullptr;
  }

  // Checks that this program can compute the loss.
  //   FailedPrecondition  it does not have the code: names the types that it
  //                       has.
  absl::Status CheckCode() const;
};

// One of a model's outputs: what training and metrics compare it with.
struct OutputSpec {
  // Empty for the only output of a model that does not name its outputs.
  std::string name = {};
  // Factor of the loss in the model's. 0: training does not go by it.
  double weight = 1;
  LossSpec loss = {};

  bool is_named() const { return !name.empty(); }
};

// Returns the columns that the losses of `outputs` read beside labels, each
// once: the first of Batch::columns.
std::vector<ExampleColumn> LossColumns(absl::Span<const OutputSpec> outputs);

// Checks the shape of an example's outputs: one axis, or [2, width] for
// in_batch_softmax.
//   InvalidArgument  it is another one: says which is wanted.
absl::Status CheckOutputShape(const job::Loss& loss,
                              absl::Span<const int64_t> shape);

// Calls LossSpec::CheckCode() for each output.
absl::Status CheckLossCode(absl::Span<const OutputSpec> outputs);

// Resolves `loss` for a model that has `outputs` outputs for one example.
//   InvalidArgument  no kind is chosen, a field is not in its range, or the
//                    loss does not allow this number of outputs: names it.
absl::StatusOr<LossSpec> ResolveLoss(const job::Loss& loss, int64_t outputs);

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_LOSS_SPEC_H_

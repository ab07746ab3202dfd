#ifndef PARASOL_ML_LOSS_LOSS_KIND_H_
#define PARASOL_ML_LOSS_LOSS_KIND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/kernel/loss/loss_batch.h"
#include "proto/job.pb.h"

namespace parasol {

// The examples of a batch, for a loss that compares them with each other.
struct ComparedExamples {
  int64_t size = 0;
  absl::Span<const float> labels = {};  // [size, label width]
  // 0 for an example that does not count; empty: all count.
  absl::Span<const float> counts = {};  // [size]
  // Values of the columns that LossKind::columns lists, in its order.
  absl::Span<const ExampleValues* const> columns = {};

  bool Counts(int64_t i) const { return counts.empty() || counts[i] != 0; }
};

// Arrays that such a loss makes of them for LossKind::compute, which reads them
// in LossBatch.
struct Comparison {
  std::vector<int32_t> integers = {};
  std::vector<float> numbers = {};
};

// One kind of loss: all that differs between job::Loss's kinds. A kind is a
// constant of its own file (kMeanSquaredErrorKind in
// ml/loss/mean_squared_error.h), and has one line in the list of
// ml/loss/loss_kinds.cc. Each function gets a loss of this kind. Labels are
// checked, and metrics computed, by the form of label alone.
struct LossKind {
  // The kind's field in job::Loss.
  job::Loss::KindCase field = job::Loss::KIND_NOT_SET;

  // Sets the unset fields of the kind's message. Null: no field has a default.
  void (*fill_defaults)(job::Loss& loss) = nullptr;

  // Checks that each field is in its range. `path` is the path of the kind's
  // message in the model. Null: there is nothing to check.
  //   InvalidArgument  "<path>.<field>: …", with the value.
  absl::Status (*check)(const std::string& path,
                        const job::Loss& loss) = nullptr;

  // Checks the number of outputs of a model, which is at least 1. Null: the
  // loss is defined for any number.
  //   InvalidArgument  "<path>: …", with the number.
  absl::Status (*check_outputs)(const std::string& path,
                                int64_t outputs) = nullptr;

  // Number of axes of the outputs of an example: 1, or 2 for [2, width].
  int axes = 1;

  // Returns the form of an example's label for a model with `outputs` outputs.
  LabelForm (*label)(int64_t outputs) = nullptr;

  // Computes the losses of a batch and their gradient, as Loss::Compute() does.
  absl::Status (*compute)(Device& device, const job::Loss& loss,
                          const LossBatch& batch,
                          const LossResult& out) = nullptr;

  // The next three are of losses that compare the examples of a batch with each
  // other, and null for others. compare() writes what compute() reads.
  void (*compare)(const job::Loss& loss, const ComparedExamples& examples,
                  Comparison& out) = nullptr;
  // Returns the columns that compare() reads. Null: none.
  std::vector<ExampleColumn> (*columns)(const job::Loss& loss) = nullptr;
  // Returns the number of elements of LossBatch::scratch, for so many examples
  // with so many outputs each.
  int64_t (*scratch)(int64_t examples, int64_t outputs) = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_LOSS_KIND_H_

#ifndef PARASOL_ML_INPUT_FEATURE_MODEL_INPUTS_H_
#define PARASOL_ML_INPUT_FEATURE_MODEL_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/feature/batch.h"
#include "proto/job.pb.h"

namespace parasol {

// What a model's loss asks of an example's label.
struct LabelForm {
  enum class Kind {
    kClass,    // the number of a class, as one float
    kOneHot,   // a probability for each class; of a class number: one is 1
    kNumbers,  // `width` numbers
  };
  Kind kind = Kind::kNumbers;
  int64_t width = 1;
  // Of kClass: 0: not known.
  int64_t classes = 0;
  // Of kNumbers: each is a probability.
  bool is_probability = false;
};

// What a model reads of a data set.
struct ModelInputs {
  std::vector<job::ModelInput> inputs;
  LabelForm label;
};

// Returns what `model` reads of an example; its input_shape counts as the one
// dense input that it is short for. `outputs` is the number of outputs per
// example (OutputsOf() of ml/model), or 0 where data is read without layers: a
// label is then one number, and the number of classes is not known.
//   InvalidArgument  the model has no input, or an input has no form.
absl::StatusOr<ModelInputs> ModelInputsOf(const job::Model& model,
                                          int64_t outputs);

// Whether `input` wants a column of its own accord (it names none) or names
// just `column`, as it is.
bool ReadsWhole(const job::ModelInput& input, absl::string_view column);

// `batch` without examples, for these inputs. Allocates nothing once it has
// held as many as it will.
void ClearBatch(const ModelInputs& inputs, Batch& batch);

// Takes off what examples from number `size` on have put into `batch`, even
// where one of them has not put in everything.
void TruncateBatch(const ModelInputs& inputs, int64_t size, Batch& batch);

// Of a format whose examples have one number as their label.
//   InvalidArgument  the loss wants several numbers.
absl::Status CheckOneLabel(const LabelForm& form, absl::string_view format);

// Appends the label of an example whose data set says that it is `number`.
//   DataLoss  it is no class number, or there are not so many classes, or it is
//             no probability, or beyond float32.
absl::Status AppendLabel(const LabelForm& form, double number,
                         std::vector<float>& labels);

// Appends an example's weight.
//   DataLoss  it is negative, or beyond float32.
absl::Status AppendWeight(double weight, std::vector<float>& weights);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_MODEL_INPUTS_H_

#ifndef PARASOL_ML_INPUT_FEATURE_MODEL_INPUTS_H_
#define PARASOL_ML_INPUT_FEATURE_MODEL_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/input/feature/batch.h"
#include "proto/job.pb.h"

namespace parasol {

// The form of label that a model's loss asks for. A class has the width 1.
struct LabelForm {
  enum class Kind {
    kClass,  // the number of a class, as one float
    // A probability for each class; for a class number one of them is 1.
    kOneHot,
    kNumbers,  // `width` numbers
    kNone,     // no label, of width 0
  };
  Kind kind = Kind::kNumbers;
  int64_t width = 1;
  // Number of classes, for kClass; 0: not known.
  int64_t classes = 0;
  // True if each number is a probability, for kNumbers.
  bool is_probability = false;
  // True if each number is a count, 0 or more, for kNumbers.
  bool is_count = false;
};

// The part of a data set that one of a model's named outputs is compared with.
struct TargetInput {
  std::string output = {};  // the output's name
  LabelForm form = {};
  job::CsvLabel label = {};
  std::string mask = {};  // a column; empty: none
  // Factors as in ModelInputs.
  std::vector<float> class_weights = {};
};

// A column that a loss or a metric reads beside labels.
struct ExampleColumn {
  enum class Kind {
    kKey,          // any value, compared with other examples' values
    kProbability,  // a number above 0, up to 1
  };
  std::string name = {};
  Kind kind = Kind::kKey;

  bool operator==(const ExampleColumn&) const = default;
};

// The parts of a data set that a model reads.
struct ModelInputs {
  std::vector<job::ModelInput> inputs;
  // The label of a model without named outputs.
  LabelForm label;
  // Factors of examples' weights by the class of the label (ClassOf()); empty:
  // all 1.
  std::vector<float> class_weights = {};
  // The model's named outputs; they replace label and class_weights.
  std::vector<TargetInput> targets = {};
  // Columns that losses and metrics read, each once.
  std::vector<ExampleColumn> columns = {};
  // Columns that no model reads, each once: their texts go along with the
  // examples. Labels and weights may be among them.
  std::vector<std::string> kept = {};

  // Returns true if examples have the one label of a model without named
  // outputs.
  bool has_one_label() const {
    return targets.empty() && label.kind != LabelForm::Kind::kNone;
  }
};

// Returns what `model` reads of an example; its input_shape counts as the one
// dense input that it is short for. `label` is the form of label that its loss
// asks for (Graph::loss of ml/model).
//   InvalidArgument  the model has no input, or an input has no form.
absl::StatusOr<ModelInputs> ModelInputsOf(const job::Model& model,
                                          const LabelForm& label);

// Returns true if `input` names no column, or names just `column` without a
// transformation.
bool ReadsWhole(const job::ModelInput& input, absl::string_view column);

// Makes `batch` an empty batch for these inputs. Allocates nothing once it has
// held its largest number of examples.
void ClearBatch(const ModelInputs& inputs, Batch& batch);

// Removes the examples from number `size` on from `batch`, and the elements of
// an example that is incomplete.
void TruncateBatch(const ModelInputs& inputs, int64_t size, Batch& batch);

// Checks the label for the data set `format`, whose examples have one number as
// their label and no columns of other labels.
//   InvalidArgument  a loss asks for several numbers, a loss or a metric reads
//                    a column, or the model has named outputs.
absl::Status CheckOneLabel(const ModelInputs& inputs, absl::string_view format);

// Checks the labels for the data set `format`, whose columns have one number
// each.
//   InvalidArgument  a loss asks for several numbers.
absl::Status CheckLabelColumns(const ModelInputs& inputs,
                               absl::string_view format);

// Checks that no columns are kept of the data set `format`, which has none but
// its features.
//   InvalidArgument  some are: names the first.
absl::Status CheckNothingKept(const ModelInputs& inputs,
                              absl::string_view format);

// Returns the columns of the targets' labels and masks, each once.
std::vector<std::string> TargetColumns(const std::vector<TargetInput>& targets);

// Appends the value of a key column: equal for equal texts.
void AppendKey(absl::string_view text, ExampleValues& values);

// Appends the value of a column of probabilities.
//   DataLoss  `number` is not above 0 and at most 1.
absl::Status AppendProbability(double number, ExampleValues& values);

// Appends the label of an example whose label in the data set is `number`.
//   DataLoss  `number` is not a class number of the model, not a probability
//             where one is needed, or beyond float32.
absl::Status AppendLabel(const LabelForm& form, double number,
                         std::vector<float>& labels);

// Returns the number of the class that `label`, which has form.width numbers,
// says: a class number, the place of the largest of several, or 1 for a number
// above .5 and 0 for others.
int64_t ClassOf(const LabelForm& form, absl::Span<const float> label);

// Sets the scales of the targets of `batch`, the whole batch of a step: to be
// called while their weights say only who counts.
void SetScales(Batch& batch);

// Multiplies the weight of each of the batch's examples by its class's weight.
void ApplyClassWeights(const ModelInputs& inputs, Batch& batch);

// Appends an example's weight.
//   DataLoss  it is negative, or beyond float32.
absl::Status AppendWeight(double weight, std::vector<float>& weights);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_MODEL_INPUTS_H_

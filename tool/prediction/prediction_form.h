#ifndef PARASOL_TOOL_PREDICTION_PREDICTION_FORM_H_
#define PARASOL_TOOL_PREDICTION_PREDICTION_FORM_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/loss/loss_spec.h"
#include "ml/loss/output_link.h"
#include "proto/job.pb.h"

namespace parasol {

// One of the things that a prediction says of an example.
struct PredictionField {
  enum class Kind { kText, kNumber, kNumbers };
  std::string name = {};  // a key in JSON, a feature of a tf.Example
  Kind kind = Kind::kNumber;
  // Names of the columns in CSV: one, or one for each of several numbers.
  std::vector<std::string> columns = {};
};

// A field's value, borrowed: a text (empty: none), or numbers.
struct PredictionValue {
  absl::string_view text = {};
  absl::Span<const float> numbers = {};
};

// The way from a model's outputs for an example to what people use: of a
// classification the class, by its name where the job says it, and the
// probability. Not thread-safe: Read() uses memory again.
class PredictionForm {
 public:
  struct Options {
    // The outputs before the sigmoid or softmax of the losses.
    bool raw = false;
    // One array of all outputs, behind the sigmoid or softmax unless `raw`.
    bool as_array = false;
    // Adds the probabilities of all classes.
    bool all_probabilities = false;
    // The name of raw outputs that have none, and of the array.
    std::string name = "outputs";
    // Columns that go along, in front.
    std::vector<std::string> kept = {};
  };

  // Creates the form of predictions of a model with `outputs`, whose labels are
  // made as `labels` say, one for each output. Where a kept column has the name
  // of a prediction, all predictions have "predicted_" in front of theirs.
  //   InvalidArgument  a kept column is named twice, or has such a name, too.
  static absl::StatusOr<PredictionForm> Create(
      absl::Span<const OutputSpec> outputs,
      absl::Span<const job::CsvLabel> labels, const Options& options);

  const std::vector<PredictionField>& fields() const { return fields_; }

  // Returns the values of fields() for an example with the outputs `outputs`
  // of the model and the texts `kept`; valid until the next call and as long as
  // both are.
  absl::Span<const PredictionValue> Read(
      absl::Span<const float> outputs,
      absl::Span<const absl::string_view> kept);

 private:
  enum class Kind {
    kNumbers,  // numbers as they are, or behind the link
    kBinary,   // one number that says yes or no
    kClasses,  // a number for each class
  };

  // One of the model's outputs.
  struct Part {
    Kind kind = Kind::kNumbers;
    OutputLink link = OutputLink::kNone;
    size_t width = 0;
    float threshold = 0;  // output of kBinary above which it is a yes
    bool all = false;     // true: with all probabilities
    std::vector<std::string> classes = {};
    std::vector<float> scratch =
        {};  // values that are computed beside the link
  };

  PredictionForm() = default;
  void AddPart(const OutputSpec& output, const job::CsvLabel& label,
               const Options& options);
  void AddField(const std::string& name, PredictionField::Kind kind,
                std::vector<std::string> columns);
  absl::Status AddKept(const std::vector<std::string>& kept);
  void ReadPart(Part& part, absl::Span<const float> outputs,
                absl::Span<const float> linked);

  std::vector<PredictionField> fields_;
  std::vector<Part> parts_;
  bool as_array_ = false;
  std::vector<float> linked_;
  std::vector<PredictionValue> values_;
};

// Returns how the labels of each of the outputs of `job` are made: one for each
// named output, or one. Empty messages where labels are numbers.
std::vector<job::CsvLabel> LabelsOfOutputs(const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_TOOL_PREDICTION_PREDICTION_FORM_H_

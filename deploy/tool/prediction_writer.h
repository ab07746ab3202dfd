#ifndef PARASOL_DEPLOY_TOOL_PREDICTION_WRITER_H_
#define PARASOL_DEPLOY_TOOL_PREDICTION_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace parasol {

// A named output and the number of its elements for an example.
struct PredictedOutput {
  std::string name = {};
  int64_t width = 0;
};

// Writes a model's outputs, example by example, to a file of one format, which
// gets its name when it is complete. Errors are those of
// storage/durable_file.h. Not thread-safe.
class PredictionWriter {
 public:
  // Creates a writer of outputs of `width` elements. The suffix of `path` is
  // the format:
  //   .csv    a line for each example, its numbers with commas; with `outputs`
  //           behind a line of the columns' names: "ctr", or "class_0" and so
  //           on of an output of several
  //   .jsonl  a line for each example, a JSON array, or with `outputs` an
  //   object
  //           of one array each; not finite: null
  //   .npy    an array [examples, width] of float32
  //   .tfrecord  a tf.Example for each example, with the feature "outputs", a
  //              list of `width` floats, or with `outputs` one feature each
  // `outputs`, unless it is empty, says whose the elements are. `is_first` is
  // false for a part of the examples that is to follow another one's: it has no
  // line of names.
  //   InvalidArgument  another suffix.
  static absl::StatusOr<std::unique_ptr<PredictionWriter>> Create(
      const std::string& path, int64_t width,
      const std::vector<PredictedOutput>& outputs = {}, bool is_first = true);
  virtual ~PredictionWriter() = default;

  // Writes the outputs of some examples, [examples, width].
  virtual absl::Status Append(absl::Span<const float> outputs) = 0;

  // Must be called once, last.
  virtual absl::Status Finish() = 0;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_PREDICTION_WRITER_H_

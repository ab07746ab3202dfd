#ifndef PARASOL_TOOL_PREDICTION_PREDICTION_WRITER_H_
#define PARASOL_TOOL_PREDICTION_PREDICTION_WRITER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tool/prediction/prediction_form.h"

namespace parasol {

// The formats of predictions.
enum class PredictionFormat { kCsv, kJsonLines, kNpy, kTfRecord };

// Returns the format that the suffix of `path` says: .csv, .jsonl, .npy,
// .tfrecord.
//   InvalidArgument  another suffix.
absl::StatusOr<PredictionFormat> PredictionFormatOf(const std::string& path);

// Writes predictions, example by example, to a file of one format, which gets
// its name when it is complete. Fails as the functions of
// storage/durable_file.h do. Not thread-safe.
class PredictionWriter {
 public:
  // Creates a writer of predictions that have `fields`. The format is
  // PredictionFormatOf(path):
  //   CSV         a line of the columns' names, then a line for each example
  //   JSON lines  an object for each example; null for what is not finite, and
  //               for an empty text
  //   npy         an array [examples, numbers] of float32, of the only field
  //   TFRecord    a tf.Example for each example, with a feature for each field
  // `is_first` is false for a part of the examples that is to follow another
  // one's: it has no line of names.
  //   InvalidArgument  another suffix.
  static absl::StatusOr<std::unique_ptr<PredictionWriter>> Create(
      const std::string& path, const std::vector<PredictionField>& fields,
      bool is_first = true);
  virtual ~PredictionWriter() = default;

  // Writes the values of an example, one for each field.
  virtual absl::Status Append(absl::Span<const PredictionValue> row) = 0;

  // Must be called once, last.
  virtual absl::Status Finish() = 0;
};

}  // namespace parasol

#endif  // PARASOL_TOOL_PREDICTION_PREDICTION_WRITER_H_

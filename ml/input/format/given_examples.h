#ifndef PARASOL_ML_INPUT_FORMAT_GIVEN_EXAMPLES_H_
#define PARASOL_ML_INPUT_FORMAT_GIVEN_EXAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/column_features.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/feature/value.h"
#include "ml/input/format/image_transform.h"
#include "ml/input/format/libsvm_set.h"
#include "proto/job.pb.h"

namespace parasol {

// A column of examples that are given by value.
struct GivenColumn {
  enum class Kind {
    kNumbers,  // numbers that are elements of a tensor
    kPixels,   // integers from 0 to 255
    kIds,      // any number of integers, each an id
    kTexts,    // any number of texts or numbers
    kSparse,   // one text "index:value …"
  };
  std::string name = {};
  Kind kind = Kind::kNumbers;
  // The shape of an example's value. Empty: one number, or for kIds and kTexts
  // any number of values.
  std::vector<int64_t> shape = {};

  // Returns the number of values that an example has; nullopt: any number.
  std::optional<int64_t> count() const;
};

// Makes a model's inputs of examples that are given by value, with the code
// that makes them of a data set's records. No file is opened. Thread-safe.
class GivenExamples {
 public:
  // Takes examples as `dataset` has them, without labels and weights. Random
  // transformations are left out. A column is named as the model's inputs name
  // it; an input that names none reads the column of its own name, or the only
  // one that the format has ("image", "features").
  //   InvalidArgument  the data set has no format, or an input does not fit it.
  static absl::StatusOr<GivenExamples> Create(const job::Dataset& dataset,
                                              const ModelInputs& inputs);

  const std::vector<GivenColumn>& columns() const { return columns_; }
  // Columns of the data set that examples may have, and that are not read.
  const std::vector<std::string>& ignored() const { return ignored_; }

  // True if the format holds numbers as text, so that their digits are what is
  // hashed and parsed.
  bool numbers_are_texts() const { return csv_.has_value(); }
  // Returns a text without the blanks and tabs around it, if the format's
  // reader leaves them out.
  absl::string_view Trimmed(absl::string_view text) const;
  // Returns true if a text, as Trimmed() has it, stands for a missing value.
  bool IsMissing(absl::string_view text) const {
    return csv_.has_value() && IsMissingText(text);
  }

  // Makes `batch` an empty batch.
  void Clear(Batch& batch) const { ClearBatch(inputs_, batch); }

  // Appends an example, given its columns in the order of columns(), with a
  // label that the model's loss accepts and that means nothing.
  //   DataLoss  a value is missing or can't be read: names the column. The
  //             batch then has a part of the example.
  absl::Status Append(const ColumnValues& row, Batch& batch) const;

 private:
  GivenExamples() = default;
  absl::Status OpenColumns();
  absl::Status OpenImages(const job::ImageTransform& transform,
                          std::optional<ImageShape> shape);
  absl::Status OpenSparse(const job::LibsvmDataset& libsvm);
  bool IsMissingText(absl::string_view text) const;
  // Returns the values of `row` with the values of lists in place of texts.
  ColumnValues WithListsSplit(const ColumnValues& row) const;
  absl::Status AppendImage(const std::vector<FieldValue>& pixels,
                           Batch& batch) const;

  ModelInputs inputs_;
  std::vector<GivenColumn> columns_;
  std::vector<std::string> ignored_;
  // The form of the values, if the format is lines of values.
  std::optional<job::CsvDataset> csv_;
  bool has_csv_lists_ = false;  // columns that are lists in such a line
  std::variant<std::monostate, ColumnFeatures, ImageReader, LibsvmRules>
      features_;
  ImageShape image_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_GIVEN_EXAMPLES_H_

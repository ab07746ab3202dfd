#ifndef PARASOL_SERVING_REQUEST_COLUMNS_H_
#define PARASOL_SERVING_REQUEST_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/value.h"
#include "ml/input/format/given_examples.h"

namespace parasol {

struct RequestLimits {
  // Number of examples of one request.
  int64_t max_examples = 1024;
  // Number of values of one request, over all columns.
  int64_t max_values = int64_t{4} << 20;
  // Bytes of the texts among them; one that stands for several counts as often.
  int64_t max_text_bytes = int64_t{64} << 20;
};

// The values of a request's columns, example by example, as they are taken off
// the wire. Values may come example by example or column by column. Its errors
// are InvalidArgument, and name the column and the example, from 0. Not
// thread-safe.
class RequestColumns {
 public:
  // `form`, which must outlive this object, says what the columns are.
  RequestColumns(const GivenExamples& form, const RequestLimits& limits);

  const GivenExamples& form() const { return form_; }
  int64_t examples() const { return examples_; }
  // Returns the number of examples whose value of `column` has ended.
  size_t ended(size_t column) const { return columns_[column].ends.size(); }

  // Returns the index of the column in form().columns().
  //   InvalidArgument  there is none: lists those that there are.
  absl::StatusOr<size_t> Find(absl::string_view name) const;
  // Returns true if the data set has the column and the model does not read it.
  bool IsIgnored(absl::string_view name) const;
  // Returns the only column.
  //   InvalidArgument  there are several: lists them.
  absl::StatusOr<size_t> OnlyColumn() const;

  // Begins a column of a request whose values come column by column.
  //   InvalidArgument  it has begun before.
  absl::Status BeginColumn(size_t column);

  // Append one value to the next example's value of `column`. A text counts as
  // GivenExamples::Trimmed() has it; it may mean a missing value, and then
  // appends none.
  absl::Status AddText(size_t column, std::string text);
  // Appends a text whose bytes are borrowed: they must outlive this object.
  absl::Status AddBorrowedText(size_t column, absl::string_view text);
  absl::Status AddInteger(size_t column, int64_t number);
  absl::Status AddUnsigned(size_t column, uint64_t number);
  // Appends a number with a fraction. `text` has the digits that the client has
  // sent.
  absl::Status AddReal(size_t column, double number, absl::string_view text);

  // Returns whether an example's value of `column` may have the shape.
  //   InvalidArgument  the shape is not the column's.
  absl::Status CheckShape(size_t column, absl::Span<const int64_t> shape) const;

  // Ends the value of the next example of `column`: all that was added since
  // the last call, of shape [] for a single value. No value at all, without a
  // shape, is a missing one.
  //   InvalidArgument  the shape is not the column's.
  absl::Status EndValue(size_t column,
                        const std::optional<std::vector<int64_t>>& shape);

  // Ends an example. Columns without a value for it are missing.
  absl::Status EndExample();
  // Ends the request, whose values came column by column.
  //   InvalidArgument  columns have different numbers of examples.
  absl::Status EndColumns();

  // Makes features of the examples.
  absl::Status ToBatch(Batch& batch) const;

 private:
  struct Column {
    std::vector<FieldValue> values;
    std::vector<size_t> ends = {};  // end of each example's values
    bool has_begun = false;
  };

  absl::Status Fault(size_t column, absl::string_view what) const;
  absl::Status Add(size_t column, FieldValue value);
  absl::Status AddNumberText(size_t column, FieldValue number);

  const GivenExamples& form_;
  const RequestLimits limits_;
  std::vector<Column> columns_;
  std::deque<std::string> texts_;  // the bytes of values that are texts
  int64_t examples_ = 0;
  int64_t num_values_ = 0;
  int64_t text_bytes_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_REQUEST_COLUMNS_H_

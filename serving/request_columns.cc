#include "serving/request_columns.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr size_t kMaxShownColumns = 20;

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", ShownText(text), "\"");
}

std::string NamesOf(const std::vector<GivenColumn>& columns) {
  std::vector<absl::string_view> names;
  for (const GivenColumn& column : columns) {
    if (names.size() == kMaxShownColumns) {
      names.push_back("…");
      break;
    }
    names.push_back(column.name);
  }
  return absl::StrJoin(names, ", ");
}

std::vector<int64_t> WithoutOnes(absl::Span<const int64_t> shape) {
  std::vector<int64_t> axes;
  for (const int64_t axis : shape) {
    if (axis != 1) axes.push_back(axis);
  }
  return axes;
}

int64_t Product(absl::Span<const int64_t> shape) {
  int64_t product = 1;
  for (const int64_t axis : shape) product *= axis;
  return product;
}

}  // namespace

RequestColumns::RequestColumns(const GivenExamples& form,
                               const RequestLimits& limits)
    : form_(form), limits_(limits), columns_(form.columns().size()) {}

absl::StatusOr<size_t> RequestColumns::Find(absl::string_view name) const {
  const std::vector<GivenColumn>& columns = form_.columns();
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the model has no input ", Quoted(name), "; it has ", NamesOf(columns)));
}

bool RequestColumns::IsIgnored(absl::string_view name) const {
  const std::vector<std::string>& ignored = form_.ignored();
  return !name.empty() &&
         std::find(ignored.begin(), ignored.end(), name) != ignored.end();
}

absl::StatusOr<size_t> RequestColumns::OnlyColumn() const {
  if (columns_.size() == 1) return 0;
  return absl::InvalidArgumentError(absl::StrCat(
      "a value without a name, but the model has ", columns_.size(),
      " inputs: ", NamesOf(form_.columns()), "; give an object of them"));
}

absl::Status RequestColumns::Fault(size_t column,
                                   absl::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat("input ", form_.columns()[column].name, " of example ",
                   columns_[column].ends.size(), ": ", what));
}

absl::Status RequestColumns::Add(size_t column, FieldValue value) {
  if (++num_values_ > limits_.max_values) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the request has more than ", limits_.max_values, " values; split it"));
  }
  columns_[column].values.push_back(value);
  return absl::OkStatus();
}

absl::Status RequestColumns::AddText(size_t column, std::string text) {
  texts_.push_back(std::move(text));
  return AddBorrowedText(column, texts_.back());
}

absl::Status RequestColumns::AddBorrowedText(size_t column,
                                             absl::string_view text) {
  text = form_.Trimmed(text);
  if (form_.IsMissing(text)) return absl::OkStatus();
  text_bytes_ += static_cast<int64_t>(text.size());
  if (text_bytes_ > limits_.max_text_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has more than ", limits_.max_text_bytes,
                     " bytes of texts; split it"));
  }
  return Add(column, FieldValue::Text(text));
}

absl::Status RequestColumns::AddNumberText(size_t column, FieldValue number) {
  char buffer[FieldValue::kMaxNumberBytes];
  return AddText(column, std::string(number.AsText(buffer)));
}

absl::Status RequestColumns::AddInteger(size_t column, int64_t number) {
  const FieldValue value = FieldValue::Integer(number);
  return form_.numbers_are_texts() ? AddNumberText(column, value)
                                   : Add(column, value);
}

absl::Status RequestColumns::AddUnsigned(size_t column, uint64_t number) {
  if (form_.numbers_are_texts()) return AddText(column, absl::StrCat(number));
  const GivenColumn::Kind kind = form_.columns()[column].kind;
  if (kind == GivenColumn::Kind::kIds) {
    return AddText(column, absl::StrCat(number));
  }
  if (number > std::numeric_limits<int64_t>::max() &&
      (kind == GivenColumn::Kind::kNumbers ||
       kind == GivenColumn::Kind::kPixels)) {
    return Fault(column,
                 absl::StrCat(number, " is beyond int64; give a fraction (",
                              number, ".0)"));
  }
  return Add(column, FieldValue::Integer(static_cast<int64_t>(number)));
}

absl::Status RequestColumns::AddReal(size_t column, double number,
                                     absl::string_view text) {
  // An integer beyond 64 bits comes here: as a text it is refused as such.
  const bool is_id = form_.columns()[column].kind == GivenColumn::Kind::kIds;
  if (form_.numbers_are_texts() || (is_id && IsInteger(text))) {
    return AddText(column, std::string(text));
  }
  return Add(column, FieldValue::Real(static_cast<float>(number)));
}

absl::Status RequestColumns::CheckShape(size_t column,
                                        absl::Span<const int64_t> shape) const {
  const GivenColumn& what = form_.columns()[column];
  const std::optional<int64_t> count = what.count();
  if (!count.has_value()) {
    if (shape.size() <= 1) return absl::OkStatus();
    return Fault(column, absl::StrCat("has the shape ", ShapeText(shape),
                                      "; give one value or a list of values"));
  }
  const std::vector<int64_t> flat = {*count};
  if (shape == flat || WithoutOnes(shape) == WithoutOnes(what.shape)) {
    return absl::OkStatus();
  }
  return Fault(column, absl::StrCat("has the shape ", ShapeText(shape),
                                    ", not ", ShapeText(what.shape)));
}

absl::Status RequestColumns::EndValue(
    size_t column, const std::optional<std::vector<int64_t>>& shape) {
  Column& taken = columns_[column];
  const size_t begin = taken.ends.empty() ? 0 : taken.ends.back();
  if (shape.has_value()) {
    RETURN_IF_ERROR(CheckShape(column, *shape));
    // A text that means a missing value leaves none.
    const auto found = static_cast<int64_t>(taken.values.size() - begin);
    if (found != 0 && found != Product(*shape)) {
      return Fault(column, "has missing values among others");
    }
  }
  taken.ends.push_back(taken.values.size());
  if (static_cast<int64_t>(taken.ends.size()) <= limits_.max_examples) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the request has more than ", limits_.max_examples,
                   " examples (--max_examples); split it"));
}

absl::Status RequestColumns::EndExample() {
  ++examples_;
  if (examples_ > limits_.max_examples) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has more than ", limits_.max_examples,
                     " examples (--max_examples); split it"));
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    const auto ends = static_cast<int64_t>(column.ends.size());
    if (ends > examples_) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", form_.columns()[i].name, " of example ",
                       examples_ - 1, " is there twice"));
    }
    if (ends < examples_) column.ends.push_back(column.values.size());
  }
  return absl::OkStatus();
}

absl::Status RequestColumns::BeginColumn(size_t column) {
  if (std::exchange(columns_[column].has_begun, true)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input ", form_.columns()[column].name, " is there twice"));
  }
  return absl::OkStatus();
}

absl::Status RequestColumns::EndColumns() {
  const GivenColumn* first = nullptr;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].has_begun) continue;
    const auto here = static_cast<int64_t>(columns_[i].ends.size());
    if (first == nullptr) {
      first = &form_.columns()[i];
      examples_ = here;
    }
    if (here == examples_) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input ", form_.columns()[i].name, " has ", here,
                     " examples, input ", first->name, " has ", examples_));
  }
  for (Column& column : columns_) {
    if (!column.has_begun) column.ends.assign(examples_, 0);
  }
  return absl::OkStatus();
}

absl::Status RequestColumns::ToBatch(Batch& batch) const {
  form_.Clear(batch);
  if (examples_ == 0) {
    return absl::InvalidArgumentError("the request has no examples");
  }
  ColumnValues row(columns_.size());
  for (int64_t example = 0; example < examples_; ++example) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      const size_t begin = example == 0 ? 0 : column.ends[example - 1];
      row[i].assign(column.values.begin() + begin,
                    column.values.begin() + column.ends[example]);
    }
    const absl::Status made = form_.Append(row, batch);
    if (made.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("example ", example, ": ", made.message()));
  }
  return absl::OkStatus();
}

}  // namespace parasol

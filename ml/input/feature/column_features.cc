#include "ml/input/feature/column_features.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Empty if the input's columns are no lists.
std::string SeparatorOf(const job::ModelInput& input) {
  return input.ids().has_sequence() ? input.ids().sequence().separator() : "";
}

std::string FormText(const std::string& separator) {
  return separator.empty()
             ? "single values"
             : absl::StrCat("lists with the separator \"", separator, "\"");
}

absl::Status Fault(const job::ModelInput& input, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("model input ", input.name(), ": ", what));
}

}  // namespace

absl::StatusOr<std::string> OwnColumn(const job::ModelInput& input,
                                      const Columns& columns) {
  if (Contains(columns.names, input.name())) return input.name();
  std::vector<std::string> candidates;
  for (const std::string& name : columns.names) {
    if (!Contains(columns.labels_and_weights, name)) candidates.push_back(name);
  }
  if (candidates.size() == 1) return candidates.front();
  return Fault(input,
               absl::StrCat("names no column, and the data set has ",
                            candidates.size(), ": ", ShownList(candidates)));
}

absl::StatusOr<ColumnFeatures> ColumnFeatures::Create(
    const std::vector<job::ModelInput>& inputs, const Columns& columns) {
  ColumnFeatures features;
  for (const job::ModelInput& input : inputs) {
    RETURN_IF_ERROR(input.has_dense() ? features.AddDense(input, columns)
                                      : features.AddIds(input, columns));
  }
  return features;
}

absl::Status ColumnFeatures::AddDense(const job::ModelInput& input,
                                      const Columns& columns) {
  job::DenseInput dense = input.dense();
  if (dense.column().empty()) {
    ASSIGN_OR_RETURN(*dense.add_column()->mutable_name(),
                     OwnColumn(input, columns));
  }
  int64_t elements = 1;
  for (const int64_t axis : dense.shape()) elements *= axis;
  if (elements < 1 || elements % dense.column_size() != 0) {
    return Fault(input, absl::StrCat("its shape ", ShapeText(dense.shape()),
                                     " is not made of ", dense.column_size(),
                                     " columns of the same size"));
  }
  std::vector<size_t> slots;
  for (const job::NumericColumn& column : dense.column()) {
    ASSIGN_OR_RETURN(const size_t slot, IndexOf(column.name(), input, columns));
    slots.push_back(slot);
  }
  dense_.emplace_back(dense, std::move(slots));
  RETURN_IF_ERROR(dense_.back().CheckDefaults())
      << "model input " << input.name();
  return absl::OkStatus();
}

absl::Status ColumnFeatures::AddIds(const job::ModelInput& input,
                                    const Columns& columns) {
  job::IdInput ids = input.ids();
  if (ids.column().empty()) {
    job::IdColumn& own = *ids.add_column();
    ASSIGN_OR_RETURN(*own.add_name(), OwnColumn(input, columns));
    own.set_missing(job::IdColumn::NO_ID);
  }
  std::vector<std::vector<size_t>> slots;
  for (const job::IdColumn& column : ids.column()) {
    if (column.name().empty()) return Fault(input, "a column without a name");
    std::vector<size_t>& parts = slots.emplace_back();
    for (const std::string& name : column.name()) {
      ASSIGN_OR_RETURN(const size_t slot, IndexOf(name, input, columns));
      parts.push_back(slot);
    }
    if (parts.size() > 1 && !column.has_hash()) {
      return Fault(input, "only `hash` makes ids of several columns");
    }
  }
  if (ids.has_sequence() && (slots.size() > 1 || slots[0].size() > 1)) {
    return Fault(input, "a sequence is made of one column");
  }
  ids_.emplace_back(ids, slots);
  return absl::OkStatus();
}

absl::StatusOr<size_t> ColumnFeatures::IndexOf(const std::string& name,
                                               const job::ModelInput& input,
                                               const Columns& columns) {
  if (!Contains(columns.names, name)) {
    return Fault(input, absl::StrCat("the data set has no column \"", name,
                                     "\", but ", ShownList(columns.names),
                                     DidYouMean(name, columns.names)));
  }
  const auto known = std::find(columns_.begin(), columns_.end(), name);
  const size_t slot = known - columns_.begin();
  const std::string separator = SeparatorOf(input);
  if (known == columns_.end()) {
    columns_.push_back(name);
    separators_.push_back(separator);
  }
  if (separators_[slot] == separator) return slot;
  return Fault(
      input,
      absl::StrCat("reads column \"", name, "\" as ", FormText(separator),
                   ", an earlier input as ", FormText(separators_[slot]),
                   "; let layers share one input"));
}

absl::Status ColumnFeatures::Append(const ColumnValues& row,
                                    Batch& batch) const {
  for (size_t i = 0; i < dense_.size(); ++i) {
    RETURN_IF_ERROR(dense_[i].Append(row, batch.dense[i].values));
  }
  for (size_t i = 0; i < ids_.size(); ++i) {
    RETURN_IF_ERROR(ids_[i].Append(row, batch.ids[i]));
  }
  return absl::OkStatus();
}

}  // namespace parasol

#include "ml/input/feature/dense_feature.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

absl::Status Fault(const std::string& column, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("column ", column, ": ", what));
}

absl::Status NotANumber(const std::string& column, const FieldValue& value) {
  char buffer[FieldValue::kMaxNumberBytes];
  return Fault(column, absl::StrCat("\"", ShownText(value.AsText(buffer), 40),
                                    "\" is not a finite float32"));
}

}  // namespace

DenseFeatureReader::DenseFeatureReader(const job::DenseInput& dense,
                                       std::vector<size_t> slots) {
  size_t elements = 1;
  for (const int64_t axis : dense.shape()) elements *= axis;
  values_each_ = elements / slots.size();
  for (size_t i = 0; i < slots.size(); ++i) {
    const job::NumericColumn& spec = dense.column(static_cast<int>(i));
    columns_.push_back({.spec = spec,
                        .slot = slots[i],
                        .scale = spec.has_stddev() ? 1 / spec.stddev() : 1.0});
  }
}

absl::Status DenseFeatureReader::CheckDefaults() const {
  for (const Column& column : columns_) {
    if (!column.spec.has_default_value()) continue;
    const float transformed = Transformed(column, column.spec.default_value());
    if (std::isfinite(transformed)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "column ", column.spec.name(), ": default_value ",
        column.spec.default_value(), " is beyond float32 once transformed"));
  }
  return absl::OkStatus();
}

absl::Status DenseFeatureReader::Append(const ColumnValues& row,
                                        std::vector<float>& values) const {
  for (const Column& column : columns_) {
    const std::vector<FieldValue>& found = row[column.slot];
    const std::string& name = column.spec.name();
    if (found.empty()) {
      if (!column.spec.has_default_value()) {
        return Fault(name, "the value is missing, and has no default_value");
      }
      values.insert(values.end(), values_each_,
                    Transformed(column, column.spec.default_value()));
      continue;
    }
    if (found.size() != values_each_) {
      return Fault(name,
                   absl::StrCat(found.size(), " values, not ", values_each_));
    }
    for (const FieldValue& value : found) {
      const std::optional<double> number = value.AsNumber();
      if (!number.has_value()) return NotANumber(name, value);
      const float transformed = Transformed(column, *number);
      if (!std::isfinite(transformed)) return NotANumber(name, value);
      values.push_back(transformed);
    }
  }
  return absl::OkStatus();
}

float DenseFeatureReader::Transformed(const Column& column, double x) const {
  if (column.spec.log1p()) x = x > 0 ? std::log1p(x) : 0;
  return static_cast<float>((x - column.spec.mean()) * column.scale);
}

}  // namespace parasol

#include "ml/input/format/label_rule.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/input/feature/number.h"
#include "ml/input/format/csv_format.h"
#include "ml/input/record/line_format.h"

namespace parasol {

namespace {

// False for what only looks like a number, as "nan" and "1,5" do.
bool IsTextLabel(absl::string_view value) {
  const std::string lower = absl::AsciiStrToLower(value);
  return !lower.empty() && lower != "nan" && lower != "inf" &&
         absl::ascii_isalpha(static_cast<unsigned char>(lower.front())) &&
         lower != "infinity";
}

}  // namespace

bool IsJobText(absl::string_view value, absl::string_view text) {
  return value == text || value == Trimmed(text);
}

LabelRule::LabelRule(const job::CsvLabel& spec) : spec_(spec) {
  for (int i = 0; i < spec.class__size(); ++i) {
    classes_.emplace(spec.class_(i), i);
  }
  for (int i = 0; i < spec.class__size(); ++i) {
    classes_.emplace(Trimmed(spec.class_(i)), i);
  }
}

absl::StatusOr<double> LabelRule::NumberOf(absl::string_view value) const {
  if (!spec_.positive().empty()) {
    return std::any_of(spec_.positive().begin(), spec_.positive().end(),
                       [value](const std::string& positive) {
                         return IsJobText(value, positive);
                       });
  }
  if (!classes_.empty()) {
    const auto found = classes_.find(value);
    if (found != classes_.end()) return found->second;
    return absl::DataLossError(
        absl::StrCat("label ", QuotedValue(value), " is not one of the ",
                     spec_.class__size(), " names in label.class"));
  }
  const std::optional<double> number = ParseNumber(value);
  if (number.has_value()) return *number;
  return absl::DataLossError(
      absl::StrCat("label ", QuotedValue(value), " is not a finite number",
                   IsTextLabel(value) && spec_.has_column()
                       ? "; of labels that are texts, label.positive names "
                         "those that are 1, or label.class all classes"
                       : ""));
}

absl::Status LabelRule::Append(const LabelForm& form,
                               const std::vector<FieldValue>& values,
                               std::vector<float>& labels) const {
  const bool is_list = form.kind != LabelForm::Kind::kClass &&
                       static_cast<int64_t>(values.size()) == form.width &&
                       form.width > 1;
  if (!is_list) {
    if (form.kind == LabelForm::Kind::kNumbers && form.width > 1) {
      return absl::DataLossError(absl::StrCat("the label has ", values.size(),
                                              " values, not ", form.width));
    }
    if (values.size() == 1 && (!spec_.positive().empty() || !classes_.empty() ||
                               !values.front().AsNumber().has_value())) {
      char buffer[FieldValue::kMaxNumberBytes];
      ASSIGN_OR_RETURN(const double label,
                       NumberOf(values.front().AsText(buffer)));
      return AppendLabel(form, label, labels);
    }
    ASSIGN_OR_RETURN(const double label, OnlyNumber(values, "label"));
    return AppendLabel(form, label, labels);
  }
  for (const FieldValue& value : values) {
    const std::optional<double> number = value.AsNumber();
    if (!number.has_value()) {
      return absl::DataLossError(
          "the label has a value that is not a finite number");
    }
    RETURN_IF_ERROR(AppendLabel({.kind = LabelForm::Kind::kNumbers,
                                 .is_probability = form.is_probability,
                                 .is_count = form.is_count},
                                *number, labels));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> OnlyNumber(const std::vector<FieldValue>& values,
                                  absl::string_view what) {
  if (values.size() != 1) {
    return absl::DataLossError(
        absl::StrCat("the ", what, " has ", values.size(), " values, not 1"));
  }
  const std::optional<double> number = values.front().AsNumber();
  if (number.has_value()) return *number;
  return absl::DataLossError(
      absl::StrCat("the ", what, " is not a finite number"));
}

}  // namespace parasol

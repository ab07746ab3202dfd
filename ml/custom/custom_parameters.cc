#include "ml/custom/custom_parameters.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"

namespace parasol {

CustomParameters::CustomParameters(
    const google::protobuf::RepeatedPtrField<job::CustomParameter>&
        parameters) {
  for (const job::CustomParameter& parameter : parameters) {
    const bool is_there = std::any_of(
        values_.begin(), values_.end(),
        [&](const auto& other) { return other.first == parameter.name(); });
    if (is_there) {
      fault_.Update(absl::InvalidArgumentError(
          absl::StrCat("parameter \"", absl::CHexEscape(parameter.name()),
                       "\" is given twice; remove one")));
    }
    values_.emplace_back(parameter.name(), parameter.value());
  }
}

const std::string* CustomParameters::Find(absl::string_view name) {
  read_.emplace_back(name);
  for (const auto& [given, value] : values_) {
    if (given == name) return &value;
  }
  return nullptr;
}

std::string CustomParameters::Text(absl::string_view name,
                                   absl::string_view fallback) {
  const std::string* const value = Find(name);
  return value == nullptr ? std::string(fallback) : *value;
}

double CustomParameters::Number(absl::string_view name, double fallback,
                                double low, double high) {
  const std::string* const value = Find(name);
  if (value == nullptr) return fallback;
  double number = 0;
  if (absl::SimpleAtod(*value, &number) && number >= low && number <= high) {
    return number;
  }
  fault_.Update(absl::InvalidArgumentError(
      absl::StrCat("parameter ", name, " is \"", absl::CHexEscape(*value),
                   "\", not a number from ", low, " to ", high)));
  return fallback;
}

absl::Status CustomParameters::CheckAllRead() const {
  if (!fault_.ok()) return fault_;
  for (const auto& [name, value] : values_) {
    if (std::find(read_.begin(), read_.end(), name) != read_.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter \"", absl::CHexEscape(name), "\" is not known (known are: ",
        read_.empty() ? "none" : absl::StrJoin(read_, ", "), ")",
        DidYouMean(name, read_)));
  }
  return absl::OkStatus();
}

}  // namespace parasol

#include "cluster/check/label_values.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

constexpr size_t kMaxValues = 1000;
constexpr size_t kMaxBytes = 200;
constexpr size_t kShown = 5;

}  // namespace

void LabelValues::Add(absl::string_view value) {
  ++all_;
  value = value.substr(0, kMaxBytes);
  const auto known = counts_.find(value);
  if (known != counts_.end()) {
    ++known->second;
  } else if (counts_.size() < kMaxValues) {
    counts_.emplace(value, 1);
  } else {
    ++others_;
  }
}

std::vector<LabelValues::Unseen> LabelValues::NeverSeen(
    const std::string& path, const job::CsvLabel& label) const {
  std::vector<Unseen> unseen;
  if (others_ > 0 || all_ == 0) return unseen;  // it may be one of the others
  const auto add = [&](const char* field, int i, const std::string& name) {
    const std::string trimmed(absl::StripAsciiWhitespace(name));
    if (counts_.contains(name) || counts_.contains(trimmed)) return;
    unseen.push_back({.name = name,
                      .line = Line(absl::StrCat(path, ".", field, "[", i, "]"),
                                   name, label.column())});
  };
  for (int i = 0; i < label.positive_size(); ++i) {
    add("positive", i, label.positive(i));
  }
  for (int i = 0; i < label.class__size(); ++i) {
    add("class", i, label.class_(i));
  }
  return unseen;
}

std::string LabelValues::Line(const std::string& path, const std::string& name,
                              const std::string& column) const {
  std::vector<std::pair<int64_t, std::string>> by_count;
  std::vector<std::string> values;
  for (const auto& [value, count] : counts_) {
    by_count.emplace_back(-count, value);
    values.push_back(value);
  }
  std::sort(by_count.begin(), by_count.end());
  std::string line = absl::StrCat(
      path, ": \"", ShownText(name, kMaxBytes), "\" is never seen in column \"",
      ShownText(column, kMaxBytes), "\", which has");
  for (size_t i = 0; i < std::min(by_count.size(), kShown); ++i) {
    absl::StrAppendFormat(&line, "%s \"%s\" (%.3g %%)", i == 0 ? "" : ",",
                          ShownText(by_count[i].second, kMaxBytes),
                          -100.0 * by_count[i].first / all_);
  }
  if (by_count.size() > kShown) absl::StrAppend(&line, ", …");
  return absl::StrCat(line, DidYouMean(name, values));
}

}  // namespace parasol

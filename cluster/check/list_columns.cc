#include "cluster/check/list_columns.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/shown_text.h"
#include "ml/input/format/csv_set.h"

namespace parasol {
namespace {

// Share of lists that are cut from which on it is worth a warning.
constexpr double kManyCut = .1;

std::optional<job::CsvDataset> LinesOf(const job::Dataset& dataset) {
  if (dataset.has_csv()) return dataset.csv();
  if (dataset.has_criteo()) return CsvOf(dataset.criteo());
  if (dataset.has_ratings()) return CsvOf(dataset.ratings());
  return std::nullopt;
}

}  // namespace

ListColumns::ListColumns(const std::vector<ColumnUse>& uses,
                         const job::Dataset& dataset,
                         const std::vector<std::string>& names)
    : csv_(LinesOf(dataset)) {
  for (const ColumnUse& use : uses) {
    if (use.sequence == nullptr) continue;
    const auto column = std::find(names.begin(), names.end(), use.column);
    if (column == names.end()) continue;
    lists_.push_back({.column = static_cast<size_t>(column - names.begin()),
                      .name = use.column,
                      .path = use.path,
                      .sequence = use.sequence});
  }
}

void ListColumns::Take(ColumnValues& row) {
  for (size_t i = 0; i < lists_.size(); ++i) {
    List& list = lists_[i];
    std::vector<FieldValue>& values = row[list.column];
    // Another input may have split it.
    const bool is_first = std::none_of(
        lists_.begin(), lists_.begin() + static_cast<std::ptrdiff_t>(i),
        [&](const List& other) { return other.column == list.column; });
    if (csv_.has_value() && is_first && !values.empty()) {
      char buffer[FieldValue::kMaxNumberBytes];
      SplitCsvList(*csv_, list.sequence->separator(),
                   values.front().AsText(buffer), split_);
      values.swap(split_);
    }
    const auto steps = static_cast<int64_t>(values.size());
    ++list.lists;
    if (steps == 0) ++list.empty;
    if (steps > list.sequence->length()) ++list.cut;
    list.longest = std::max(list.longest, steps);
  }
}

std::vector<std::string> ListColumns::Warnings() const {
  std::vector<std::string> warnings;
  for (const List& list : lists_) {
    const std::string warning = WarningOf(list);
    if (warning.empty()) continue;
    warnings.push_back(absl::StrCat(list.path, ": ", warning));
  }
  return warnings;
}

std::string ListColumns::WarningOf(const List& list) const {
  if (list.lists == 0) return "";
  const std::string name =
      absl::StrCat("column \"", ShownText(list.name), "\"");
  if (list.empty == list.lists) {
    return absl::StrCat("all lists of ", name, " are empty");
  }
  if (csv_.has_value() && list.longest == 1) {
    return absl::StrCat("no value of ", name, " has the separator \"",
                        ShownText(list.sequence->separator()),
                        "\": each is a list of one step");
  }
  const double share =
      static_cast<double>(list.cut) / static_cast<double>(list.lists);
  if (share < kManyCut) return "";
  return absl::StrFormat(
      "%.3g %% of the lists of %s have more than %d steps, the longest %d: "
      "they lose their %s ones",
      100 * share, name, list.sequence->length(), list.longest,
      list.sequence->keep() == job::IdSequence::FIRST ? "last" : "first");
}

}  // namespace parasol

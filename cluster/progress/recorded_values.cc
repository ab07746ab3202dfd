#include "cluster/progress/recorded_values.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

// Returns the totals of a name; null if there is no room for it.
RecordedTotal* Find(const std::string& name, RecordedTotals& totals) {
  const auto known = totals.find(name);
  if (known != totals.end()) return &known->second;
  return totals.size() < kMostRecordedNames ? &totals[name] : nullptr;
}

}  // namespace

absl::Status CheckRecordedName(absl::string_view name) {
  constexpr size_t kMostCharacters = 100;
  constexpr absl::string_view kTaken[] = {
      "global_step",         "from_step", "epoch",   "loss",  "learning_rate",
      "examples_per_second", "staleness", "seconds", "run_id"};
  // No message may have bytes that are no UTF-8.
  const bool is_text = OneLine(name) == name;
  if (name.empty() || name.size() > kMostCharacters || !is_text) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", ShownText(name),
        "\" is no name of a recorded value: give one of 1 to ", kMostCharacters,
        " characters", is_text ? "" : ", all printable (UTF-8)"));
  }
  if (std::find(std::begin(kTaken), std::end(kTaken), name) ==
      std::end(kTaken)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is recorded anyway: give the value another name"));
}

void AddRecorded(const std::vector<std::pair<std::string, double>>& values,
                 RecordedTotals& totals) {
  for (const auto& [name, value] : values) {
    RecordedTotal* const total = Find(name, totals);
    if (total == nullptr) continue;
    ++total->count;
    if (std::isfinite(value)) {
      total->sum += value;
    } else {
      ++total->not_finite;
    }
  }
}

void AddRecorded(const RecordedTotals& more, RecordedTotals& totals) {
  for (const auto& [name, added] : more) {
    RecordedTotal* const total = Find(name, totals);
    if (total == nullptr) continue;
    total->sum += added.sum;
    total->count += added.count;
    total->not_finite += added.not_finite;
  }
}

RecordedTotals RecordedSince(const RecordedTotals& before,
                             const RecordedTotals& now) {
  RecordedTotals since;
  for (const auto& [name, total] : now) {
    const auto known = before.find(name);
    const RecordedTotal from =
        known == before.end() ? RecordedTotal() : known->second;
    if (total.count <= from.count) continue;
    since[name] = {
        .sum = total.sum - from.sum,
        .count = total.count - from.count,
        .not_finite = std::clamp(total.not_finite - from.not_finite, int64_t{0},
                                 total.count - from.count)};
  }
  return since;
}

std::vector<std::pair<std::string, double>> MeansOf(
    const RecordedTotals& totals) {
  std::vector<std::pair<std::string, double>> means;
  for (const auto& [name, total] : totals) {
    means.emplace_back(name,
                       total.not_finite > 0
                           ? std::numeric_limits<double>::quiet_NaN()
                           : total.sum / static_cast<double>(total.count));
  }
  return means;
}

void ToMessages(const RecordedTotals& totals, RecordedMessages& messages) {
  for (const auto& [name, total] : totals) {
    wire::RecordedValues& message = *messages.Add();
    message.set_name(name);
    message.set_sum(total.sum);
    message.set_count(total.count);
    message.set_not_finite(total.not_finite);
  }
}

RecordedTotals RecordedOf(const RecordedMessages& messages) {
  RecordedTotals totals;
  for (const wire::RecordedValues& message : messages) {
    if (!CheckRecordedName(message.name()).ok() || message.count() < 1 ||
        message.not_finite() < 0 || message.not_finite() > message.count() ||
        !std::isfinite(message.sum())) {
      continue;
    }
    RecordedTotal* const total = Find(message.name(), totals);
    if (total == nullptr) continue;
    *total = {message.sum(), message.count(), message.not_finite()};
  }
  return totals;
}

}  // namespace parasol

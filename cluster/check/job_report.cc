#include "cluster/check/job_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

constexpr size_t kShownClasses = 20;
constexpr size_t kShownColumns = 60;
constexpr size_t kShownBytes = 40;  // of a value

std::string Count(int64_t number, const char* what) {
  return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
}

std::string Percent(int64_t part, int64_t whole) {
  return absl::StrFormat("%.3g %%", whole == 0 ? 0 : 100.0 * part / whole);
}

std::string NumbersText(const NumberStatistics& numbers) {
  return absl::StrFormat("mean %.6g, stddev %.6g, from %.6g to %.6g",
                         numbers.mean, numbers.stddev(), numbers.min,
                         numbers.max);
}

std::string Bytes(int64_t bytes) {
  constexpr double kKibi = 1024;
  double scaled = static_cast<double>(bytes);
  const char* unit = "bytes";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (scaled < kKibi) break;
    scaled /= kKibi;
    unit = larger;
  }
  return absl::StrFormat("%.4g %s", scaled, unit);
}

// ", 3 different: "basic" 34 %, …".
void AppendFrequent(const ColumnReport& column, std::string& text) {
  if (column.distinct == 0) return;
  absl::StrAppend(&text, ", ", column.distinct,
                  column.distinct_is_least ? " or more" : "", " different: ");
  const int64_t values = column.numbers.count + column.texts;
  for (size_t i = 0; i < column.frequent.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "\"" : ", \"",
                    ShownText(column.frequent[i].name, kShownBytes), "\" ",
                    Percent(column.frequent[i].examples, values));
  }
  if (column.distinct > static_cast<int64_t>(column.frequent.size())) {
    text += ", …";
  }
}

void AppendColumn(const ColumnReport& column, std::string& text) {
  absl::StrAppend(
      &text, "  column ", OneLine(column.name),
      column.use.empty() ? "" : absl::StrCat(" (", OneLine(column.use), ")"),
      ": ");
  if (column.records == 0 && column.use.empty()) {
    text += "not looked at\n";
    return;
  }
  if (column.missing > 0) {
    absl::StrAppend(&text, Percent(column.missing, column.records),
                    " missing, ");
  }
  if (column.has_ids_only()) {
    absl::StrAppend(&text, Count(column.numbers.count, "integer"));
  } else if (column.numbers.count > 0) {
    absl::StrAppend(&text, NumbersText(column.numbers),
                    column.numbers.is_exact() || column.has_large_reals
                        ? ""
                        : " (as float64, which rounds integers beyond 2^53)");
    if (column.texts > 0) {
      absl::StrAppend(&text, ", and ", Count(column.texts, "text"));
    }
  } else {
    absl::StrAppend(&text, Count(column.texts, "text"));
  }
  AppendFrequent(column, text);
  text += '\n';
}

void AppendLabels(const LabelsReport& labels, int64_t looked_at,
                  std::string& text) {
  const std::string name =
      labels.output.empty() ? "" : absl::StrCat(" of ", OneLine(labels.output));
  const std::string rest =
      labels.examples == looked_at
          ? ""
          : absl::StrCat("; ", Percent(looked_at - labels.examples, looked_at),
                         " of the examples do not count");
  if (labels.classes.empty()) {
    if (labels.numbers.count == 0) return;
    absl::StrAppend(&text, "  labels", name, ": ", NumbersText(labels.numbers),
                    rest, "\n");
    return;
  }
  std::vector<std::string> shares;
  for (const ClassShare& share : labels.classes) {
    if (shares.size() == kShownClasses) {
      shares.push_back(absl::StrCat("… (", labels.classes.size(), " classes)"));
      break;
    }
    shares.push_back(absl::StrCat(OneLine(share.name), " ",
                                  Percent(share.examples, labels.examples)));
  }
  absl::StrAppend(&text, "  labels", name, ": ", absl::StrJoin(shares, ", "),
                  rest, "\n");
}

void AppendPattern(const PatternReport& pattern, std::string& text) {
  const size_t shown = std::min(pattern.columns.size(), kShownColumns);
  absl::StrAppend(
      &text, "pattern ", OneLine(pattern.pattern), ", ", pattern.path, ": ",
      Count(static_cast<int64_t>(pattern.columns.size()), "column"), ": ",
      OneLine(absl::StrJoin(pattern.columns.begin(),
                            pattern.columns.begin() + shown, ", ")),
      shown < pattern.columns.size() ? ", …; --json has all" : "", "\n");
}

void AppendDataset(const DatasetReport& data, std::string& text) {
  absl::StrAppend(&text, data.name, ": ",
                  data.examples > 0
                      ? Count(data.examples, "example")
                      : "no examples are made, because of faults");
  if (data.is_partial()) {
    absl::StrAppend(&text, ", of which the first ", data.looked_at,
                    " are looked at");
  }
  if (data.skipped > 0) {
    absl::StrAppend(&text, ", ", data.skipped, " of them corrupt and left out");
  }
  text += '\n';
  for (size_t i = 0; i < data.columns.size(); ++i) {
    if (i == kShownColumns) {
      absl::StrAppend(&text, "  … and ", data.columns.size() - i,
                      " more columns; --json has all\n");
      break;
    }
    AppendColumn(data.columns[i], text);
  }
  for (const LabelsReport& labels : data.labels) {
    AppendLabels(labels, data.looked_at, text);
  }
  for (const std::string& row : data.rows) {
    absl::StrAppend(&text, "  example ", OneLine(row), "\n");
  }
}

}  // namespace

void NumberStatistics::Add(double number) {
  min = count == 0 ? number : std::min(min, number);
  max = count == 0 ? number : std::max(max, number);
  ++count;
  // Welford's sums, which keep their digits.
  const double distance = number - mean;
  mean += distance / static_cast<double>(count);
  squares += distance * (number - mean);
}

bool NumberStatistics::is_exact() const {
  constexpr double kMaxExact = 9007199254740992;  // 2^53
  return count == 0 || (min > -kMaxExact && max < kMaxExact);
}

double NumberStatistics::stddev() const {
  return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

std::string ToText(const JobReport& report) {
  std::string text;
  for (const PatternReport& pattern : report.patterns) {
    AppendPattern(pattern, text);
  }
  for (const DatasetReport& data : report.data_sets) AppendDataset(data, text);
  for (const Normalization& n : report.normalizations) {
    absl::StrAppend(
        &text, "not normalized: ", OneLine(n.column),
        n.pattern.empty() ? "" : absl::StrCat(" of ", OneLine(n.pattern)), ", ",
        n.path);
    for (size_t i = 0; i < n.mean.size(); ++i) {
      absl::StrAppendFormat(&text, "%s mean: %.6g stddev: %.6g",
                            i == 0 ? " {" : "", n.mean[i], n.stddev[i]);
    }
    absl::StrAppend(&text, " }\n");
  }
  if (report.end_step.has_value()) {
    absl::StrAppend(&text, "end: step ", *report.end_step, report.end, "\n");
  }
  for (const RoleMemory& role : report.memory) {
    absl::StrAppend(
        &text, "memory of ", role.role, ": ", Bytes(role.bytes),
        role.parts.empty() ? "" : absl::StrCat(" (", role.parts, ")"), "\n");
  }
  for (const std::string& warning : report.warnings) {
    absl::StrAppend(&text, "warning: ", warning, "\n");
  }
  if (report.faults.empty()) {
    absl::StrAppend(
        &text, "no faults, ",
        Count(static_cast<int64_t>(report.warnings.size()), "warning"), "\n");
  }
  return text;
}

}  // namespace parasol

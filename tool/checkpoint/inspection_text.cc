#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "tool/checkpoint/inspection.h"

namespace parasol {
namespace {

using Row = std::vector<std::string>;

std::string TimeOf(const durable::CheckpointManifest& manifest) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC",
                          absl::FromUnixMicros(manifest.created_unix_micros()),
                          absl::UTCTimeZone());
}

// Lines of columns, each as wide as its longest word; the first one is to the
// left.
std::string Aligned(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      const int width = static_cast<int>(widths[i]);
      absl::StrAppendFormat(&line, " %*s", i == 0 ? -width : width + 1, row[i]);
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

Row StatisticsOf(const ArrayStatistics& statistics) {
  return {absl::StrFormat("%.4g", statistics.min()),
          absl::StrFormat("%.4g", statistics.max()),
          absl::StrFormat("%.4g", statistics.mean()),
          absl::StrFormat("%.4g", statistics.deviation()),
          absl::StrCat(statistics.zeros()),
          absl::StrCat(statistics.nans() + statistics.infinities())};
}

constexpr const char* kStatistics[] = {"min",       "max",   "mean",
                                       "deviation", "zeros", "not finite"};

// Appends a line for the value, whose words are `words`, and one for each slot.
void AppendArrays(const Row& words, const Inspection::Contents& contents,
                  std::vector<Row>& rows) {
  for (size_t i = 0; i < contents.arrays.size(); ++i) {
    Row row = words;
    if (i > 0) {
      row.assign(words.size(), "");
      row[0] = absl::StrCat("  slot ", contents.arrays[i].name);
    }
    const Row statistics = StatisticsOf(contents.arrays[i].statistics);
    row.insert(row.end(), statistics.begin(), statistics.end());
    rows.push_back(std::move(row));
  }
}

std::string VariablesText(const Inspection& inspection) {
  Row head = {"variable", "shape", "dtype", "updates"};
  head.insert(head.end(), std::begin(kStatistics), std::end(kStatistics));
  std::vector<Row> rows = {head};
  for (size_t i = 0; i < inspection.variables.size(); ++i) {
    const durable::CheckpointVariable& variable =
        inspection.manifest.variable(static_cast<int>(i));
    const Inspection::Contents& contents = inspection.variables[i];
    AppendArrays({variable.name(),
                  absl::StrCat("[", absl::StrJoin(variable.shape(), ","), "]"),
                  "float32", absl::StrCat(contents.updates)},
                 contents, rows);
  }
  return Aligned(rows);
}

std::string TablesText(const Inspection& inspection) {
  Row head = {"table", "rows", "width", "updates"};
  head.insert(head.end(), std::begin(kStatistics), std::end(kStatistics));
  std::vector<Row> rows = {head};
  for (size_t i = 0; i < inspection.tables.size(); ++i) {
    const durable::CheckpointTable& table =
        inspection.manifest.table(static_cast<int>(i));
    const Inspection::Contents& contents = inspection.tables[i];
    AppendArrays({table.name(), absl::StrCat(contents.rows),
                  absl::StrCat(table.width()), absl::StrCat(contents.updates)},
                 contents, rows);
  }
  return Aligned(rows);
}

std::string FilesText(const durable::CheckpointManifest& manifest) {
  std::vector<Row> rows = {{"file", "bytes", "crc32c"}};
  for (const durable::CheckpointFile& file : manifest.file()) {
    rows.push_back({file.name(), absl::StrCat(file.bytes()),
                    absl::StrFormat("%08x", file.crc32c())});
  }
  return Aligned(rows);
}

}  // namespace

std::string ToText(const Inspection& inspection) {
  const durable::CheckpointManifest& manifest = inspection.manifest;
  std::string text = absl::StrCat(
      "checkpoint  ", inspection.path, "\nstep        ", manifest.global_step(),
      manifest.final() ? " (the job's last)" : "", "\njob         ",
      manifest.job().name(), "\nrun         ", manifest.run_id(),
      "\nwritten     ", TimeOf(manifest), "\nformat      ",
      manifest.format_version(), "\n\n");
  if (!inspection.variables.empty()) {
    absl::StrAppend(&text, VariablesText(inspection), "\n");
  }
  if (!inspection.tables.empty()) {
    absl::StrAppend(&text, TablesText(inspection), "\n");
  }
  return absl::StrCat(text, FilesText(manifest));
}

}  // namespace parasol

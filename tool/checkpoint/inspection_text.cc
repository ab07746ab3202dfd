#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/shown_text.h"
#include "tool/checkpoint/aligned_text.h"
#include "tool/checkpoint/inspection.h"

namespace parasol {
namespace {

using Row = std::vector<std::string>;

std::string TimeOf(const durable::CheckpointManifest& manifest) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC",
                          absl::FromUnixMicros(manifest.created_unix_micros()),
                          absl::UTCTimeZone());
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
  return AlignedText(rows);
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
  return AlignedText(rows);
}

std::string FilesText(const durable::CheckpointManifest& manifest) {
  std::vector<Row> rows = {{"file", "bytes", "crc32c", "increment"}};
  for (const durable::CheckpointFile& file : manifest.file()) {
    rows.push_back(
        {file.name(), absl::StrCat(file.bytes()),
         absl::StrFormat("%08x", file.crc32c()),
         file.increment() == 0 ? "-" : absl::StrCat(file.increment())});
  }
  return AlignedText(rows);
}

std::string WorkersText(const durable::CheckpointManifest& manifest) {
  std::vector<Row> rows = {{"worker", "steps", "clock"}};
  for (const durable::WorkerProgress& worker : manifest.worker_progress()) {
    rows.push_back({absl::StrFormat("%016x", worker.incarnation()),
                    absl::StrCat(worker.completed_steps()),
                    worker.has_clock() ? absl::StrCat(worker.clock()) : "-"});
  }
  return AlignedText(rows);
}

std::string JournalsText(const std::vector<ShardJournal>& journals) {
  std::vector<Row> rows = {{"journal of", "number", "from segment"}};
  for (const ShardJournal& journal : journals) {
    rows.push_back({absl::StrCat("shard ", journal.shard.shard, " of ",
                                 journal.shard.num_shards),
                    absl::StrFormat("%016x", journal.place.journal),
                    absl::StrCat(journal.place.segment)});
  }
  return AlignedText(rows);
}

}  // namespace

std::string ToText(const Inspection& inspection) {
  const durable::CheckpointManifest& manifest = inspection.manifest;
  std::string text = absl::StrCat(
      "checkpoint  ", inspection.path, "\nstep        ", manifest.global_step(),
      manifest.final() ? " (the job's last)" : "", "\njob         ",
      OneLine(manifest.job().name()), "\nrun         ",
      OneLine(manifest.run_id()), "\nwritten     ", TimeOf(manifest),
      "\nformat      ", manifest.format_version(), "\n\n");
  if (!inspection.variables.empty()) {
    absl::StrAppend(&text, VariablesText(inspection), "\n");
  }
  if (!inspection.tables.empty()) {
    absl::StrAppend(&text, TablesText(inspection), "\n");
  }
  if (!manifest.worker_progress().empty()) {
    absl::StrAppend(&text, WorkersText(manifest), "\n");
  }
  if (!inspection.journals.empty()) {
    absl::StrAppend(&text, JournalsText(inspection.journals), "\n");
  }
  return absl::StrCat(text, FilesText(manifest));
}

}  // namespace parasol

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tool/checkpoint/finite_or_null.h"
#include "tool/checkpoint/inspection.h"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const ArrayStatistics& statistics) {
  return {{"elements", statistics.elements()},
          {"min", FiniteOrNull(statistics.min())},
          {"max", FiniteOrNull(statistics.max())},
          {"mean", FiniteOrNull(statistics.mean())},
          {"deviation", FiniteOrNull(statistics.deviation())},
          {"zeros", statistics.zeros()},
          {"nan", statistics.nans()},
          {"infinite", statistics.infinities()}};
}

// Adds "value" and "slots".
void AddArrays(const Inspection::Contents& contents, Json& entry) {
  entry["updates"] = contents.updates;
  entry["value"] = ToJson(contents.arrays[0].statistics);
  entry["slots"] = Json::object();
  for (size_t i = 1; i < contents.arrays.size(); ++i) {
    entry["slots"][contents.arrays[i].name] =
        ToJson(contents.arrays[i].statistics);
  }
}

Json VariablesOf(const Inspection& inspection) {
  Json variables = Json::array();
  for (size_t i = 0; i < inspection.variables.size(); ++i) {
    const durable::CheckpointVariable& variable =
        inspection.manifest.variable(static_cast<int>(i));
    Json entry = {{"name", variable.name()},
                  {"shape", Json::array()},
                  {"dtype", "float32"}};
    for (const int64_t size : variable.shape()) entry["shape"].push_back(size);
    AddArrays(inspection.variables[i], entry);
    variables.push_back(std::move(entry));
  }
  return variables;
}

Json TablesOf(const Inspection& inspection) {
  Json tables = Json::array();
  for (size_t i = 0; i < inspection.tables.size(); ++i) {
    const durable::CheckpointTable& table =
        inspection.manifest.table(static_cast<int>(i));
    Json entry = {{"name", table.name()},
                  {"rows", inspection.tables[i].rows},
                  {"width", table.width()},
                  {"dtype", "float32"}};
    AddArrays(inspection.tables[i], entry);
    tables.push_back(std::move(entry));
  }
  return tables;
}

Json FilesOf(const durable::CheckpointManifest& manifest) {
  Json files = Json::array();
  for (const durable::CheckpointFile& file : manifest.file()) {
    files.push_back({{"name", file.name()},
                     {"bytes", file.bytes()},
                     {"crc32c", file.crc32c()},
                     {"increment", file.increment()}});
  }
  return files;
}

Json WorkersOf(const durable::CheckpointManifest& manifest) {
  Json workers = Json::array();
  for (const durable::WorkerProgress& worker : manifest.worker_progress()) {
    workers.push_back({{"incarnation", worker.incarnation()},
                       {"completed_steps", worker.completed_steps()},
                       {"clock", nullptr}});
    if (worker.has_clock()) workers.back()["clock"] = worker.clock();
  }
  return workers;
}

Json JournalsOf(const std::vector<ShardJournal>& journals) {
  Json json = Json::array();
  for (const ShardJournal& journal : journals) {
    json.push_back({{"shard", journal.shard.shard},
                    {"num_shards", journal.shard.num_shards},
                    {"journal", journal.place.journal},
                    {"segment", journal.place.segment}});
  }
  return json;
}

}  // namespace

std::string ToJson(const Inspection& inspection) {
  const durable::CheckpointManifest& manifest = inspection.manifest;
  const Json json = {
      {"checkpoint", inspection.path},
      {"global_step", manifest.global_step()},
      {"final", manifest.final()},
      {"job", manifest.job().name()},
      {"run_id", manifest.run_id()},
      {"written",
       absl::FormatTime(absl::FromUnixMicros(manifest.created_unix_micros()),
                        absl::UTCTimeZone())},
      {"format_version", manifest.format_version()},
      {"variables", VariablesOf(inspection)},
      {"tables", TablesOf(inspection)},
      {"workers", WorkersOf(manifest)},
      {"journals", JournalsOf(inspection.journals)},
      {"files", FilesOf(manifest)}};
  // Names are bytes: what is no UTF-8 is replaced.
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace),
                      "\n");
}

}  // namespace parasol

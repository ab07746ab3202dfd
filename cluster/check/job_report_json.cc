#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/check/job_report.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

Json NumbersJson(const NumberStatistics& numbers) {
  if (numbers.count == 0) return nullptr;
  return {{"count", numbers.count},
          {"mean", numbers.mean},
          {"stddev", numbers.stddev()},
          {"min", numbers.min},
          {"max", numbers.max}};
}

Json ClassesJson(const LabelsReport& labels) {
  Json classes = Json::array();
  for (const ClassShare& share : labels.classes) {
    classes.push_back({{"class", share.name}, {"examples", share.examples}});
  }
  return classes;
}

Json FrequentJson(const ColumnReport& column) {
  Json values = Json::array();
  for (const ClassShare& value : column.frequent) {
    values.push_back({{"value", value.name}, {"count", value.examples}});
  }
  return values;
}

Json DatasetJson(const DatasetReport& data) {
  Json columns = Json::array();
  for (const ColumnReport& column : data.columns) {
    columns.push_back(
        {{"name", column.name},
         {"use", column.use},
         {"records", column.records},
         {"missing", column.missing},
         {"texts", column.texts},
         {"numbers",
          column.has_ids_only() ? Json(nullptr) : NumbersJson(column.numbers)},
         {"distinct", column.distinct},
         {"distinct_is_least", column.distinct_is_least},
         {"frequent", FrequentJson(column)}});
  }
  Json json = {{"name", data.name},
               {"examples", data.examples},
               {"looked_at", data.looked_at},
               {"skipped", data.skipped},
               {"columns", columns},
               {"classes", Json::array()},
               {"labels", nullptr}};
  Json outputs = Json::array();
  for (const LabelsReport& labels : data.labels) {
    if (labels.output.empty()) {
      json["classes"] = ClassesJson(labels);
      json["labels"] = NumbersJson(labels.numbers);
    } else {
      outputs.push_back({{"output", labels.output},
                         {"examples", labels.examples},
                         {"classes", ClassesJson(labels)},
                         {"labels", NumbersJson(labels.numbers)}});
    }
  }
  if (!outputs.empty()) json["outputs"] = outputs;
  json["rows"] = data.rows;
  return json;
}

}  // namespace

std::string ToJson(const JobReport& report) {
  Json json = {{"faults", report.faults}, {"warnings", report.warnings}};
  json["patterns"] = Json::array();
  for (const PatternReport& pattern : report.patterns) {
    json["patterns"].push_back({{"path", pattern.path},
                                {"pattern", pattern.pattern},
                                {"columns", pattern.columns}});
  }
  json["data_sets"] = Json::array();
  for (const DatasetReport& data : report.data_sets) {
    json["data_sets"].push_back(DatasetJson(data));
  }
  json["normalizations"] = Json::array();
  for (const Normalization& n : report.normalizations) {
    json["normalizations"].push_back({{"path", n.path},
                                      {"column", n.column},
                                      {"mean", n.mean},
                                      {"stddev", n.stddev}});
  }
  json["end_step"] =
      report.end_step.has_value() ? Json(*report.end_step) : Json(nullptr);
  json["memory"] = Json::array();
  for (const RoleMemory& role : report.memory) {
    json["memory"].push_back(
        {{"role", role.role}, {"bytes", role.bytes}, {"parts", role.parts}});
  }
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace),
                      "\n");
}

}  // namespace parasol

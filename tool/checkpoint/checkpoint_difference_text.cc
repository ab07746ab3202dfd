#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tool/checkpoint/checkpoint_difference.h"
#include "tool/checkpoint/finite_or_null.h"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

std::string LineOf(const ArrayDifference& array) {
  return absl::StrFormat("%s: %d of %d elements differ, by %.6g at most\n",
                         array.name, array.differing, array.elements,
                         array.largest);
}

std::string LineOf(const TableDifference& table) {
  return absl::StrFormat(
      "table %s: %d of %d rows differ, by %.6g at most; %d rows only in A, %d "
      "only in B\n",
      table.name, table.differing, table.rows_a - table.only_in_a,
      table.largest, table.only_in_a, table.only_in_b);
}

Json ArraysOf(const CheckpointDifference& difference) {
  Json arrays = Json::array();
  for (const ArrayDifference& array : difference.arrays) {
    arrays.push_back({{"name", array.name},
                      {"elements", array.elements},
                      {"differing", array.differing},
                      {"largest", FiniteOrNull(array.largest)}});
  }
  return arrays;
}

Json TablesOf(const CheckpointDifference& difference) {
  Json tables = Json::array();
  for (const TableDifference& table : difference.tables) {
    tables.push_back({{"name", table.name},
                      {"rows_a", table.rows_a},
                      {"rows_b", table.rows_b},
                      {"only_in_a", table.only_in_a},
                      {"only_in_b", table.only_in_b},
                      {"differing", table.differing},
                      {"largest", FiniteOrNull(table.largest)}});
  }
  return tables;
}

}  // namespace

std::string ToText(const CheckpointDifference& difference, double tolerance) {
  std::string text;
  for (const std::string& sentence : difference.structure) {
    absl::StrAppend(&text, sentence, "\n");
  }
  for (const ArrayDifference& array : difference.arrays) {
    if (array.largest > tolerance) text += LineOf(array);
  }
  for (const TableDifference& table : difference.tables) {
    if (table.largest > tolerance || table.only_in_a + table.only_in_b > 0) {
      text += LineOf(table);
    }
  }
  absl::StrAppendFormat(
      &text, "A is of step %d of run %s, B of step %d of run %s: %s\n",
      difference.a.global_step(), difference.a.run_id(),
      difference.b.global_step(), difference.b.run_id(),
      difference.IsSame(tolerance) ? "same values" : "they differ");
  return text;
}

std::string ToJson(const CheckpointDifference& difference, double tolerance) {
  const Json json = {{"same", difference.IsSame(tolerance)},
                     {"tolerance", tolerance},
                     {"global_step_a", difference.a.global_step()},
                     {"global_step_b", difference.b.global_step()},
                     {"run_id_a", difference.a.run_id()},
                     {"run_id_b", difference.b.run_id()},
                     {"structure", difference.structure},
                     {"arrays", ArraysOf(difference)},
                     {"tables", TablesOf(difference)}};
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace),
                      "\n");
}

}  // namespace parasol

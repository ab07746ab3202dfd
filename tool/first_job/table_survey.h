#ifndef PARASOL_TOOL_FIRST_JOB_TABLE_SURVEY_H_
#define PARASOL_TOOL_FIRST_JOB_TABLE_SURVEY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/check/job_report.h"
#include "cluster/check/value_counts.h"

namespace parasol {

// The values of a column of a table.
struct SurveyedColumn {
  std::string name = {};
  int64_t missing = 0;            // values that are empty
  NumberStatistics numbers = {};  // statistics of values that are numbers
  NumberStatistics logs = {};  // statistics of log(1 + x), of 0 for x below 0
  bool are_integers = true;    // all numbers are written without a point
  bool counts_up = true;       // each number is one more than that before it
  double last = 0;             // the last number
  int64_t dates = 0;           // values such as 2024-03-01 or 1.3.2024 10:15
  int64_t decimal_commas = 0;  // values such as 3,14
  ValueCounts values = ValueCounts();  // all values but missing ones
  ValueCounts texts = ValueCounts();   // values that are no numbers
};

// The contents of a table in a file of lines.
struct TableSurvey {
  std::string delimiter = ",";
  // True if the first line has the names of the columns; otherwise these are
  // "c1", "c2", ….
  bool has_header = true;
  int64_t records = 0;   // number that was looked at
  bool is_whole = true;  // no records are left
  int64_t corrupt = 0;   // records with another number of values
  std::vector<SurveyedColumn> columns = {};
};

// Returns the delimiter that splits the lines at the beginning of a file,
// `text`, into the same number of values, two or more: a comma, a tab, a
// semicolon or a bar; a comma if none does. Pure.
std::string DelimiterOf(absl::string_view text);

// Returns true if `values`, the first line's, are names: none is a number, and
// not all are empty. Pure.
bool AreNames(const std::vector<absl::string_view>& values);

// Returns true for "2024-03-01", "1.3.2024", "03/01/24" and the same with a
// time behind it. Pure.
bool IsDate(absl::string_view text);

// Surveys the first `max_records` of the table in the file at `path`, which may
// be packed by gzip.
//   InvalidArgument  it is empty, or no table.
//   any other        as for RawColumns::Open().
absl::StatusOr<TableSurvey> SurveyTable(const std::string& path,
                                        int64_t max_records);

}  // namespace parasol

#endif  // PARASOL_TOOL_FIRST_JOB_TABLE_SURVEY_H_

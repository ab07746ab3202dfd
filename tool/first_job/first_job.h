#ifndef PARASOL_TOOL_FIRST_JOB_FIRST_JOB_H_
#define PARASOL_TOOL_FIRST_JOB_FIRST_JOB_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tool/first_job/column_plan.h"
#include "tool/first_job/table_survey.h"

namespace parasol {

struct FirstJobOptions {
  std::string name = {};   // the job's
  std::string file = {};   // the table, as the job names it
  std::string label = {};  // a column
  FirstTask task = FirstTask::kGuess;
};

// A job file for a table, and what is to be known of it.
struct FirstJob {
  std::string text = {};
  std::string task = {};  // name of the task, for people
  int columns_used = 0;
  std::string note = {};  // line about odd labels; may be empty
  // Columns that are left out, each with the reason.
  std::vector<std::string> left_out = {};
};

// Writes a first job for a table: a small model of all columns that are of use,
// of which four fifths of the lines train, and the rest says when to stop.
// Pure.
//   InvalidArgument  there is no such column, its values are no labels, or no
//                    other column is of use.
absl::StatusOr<FirstJob> MakeFirstJob(const TableSurvey& survey,
                                      const FirstJobOptions& options);

}  // namespace parasol

#endif  // PARASOL_TOOL_FIRST_JOB_FIRST_JOB_H_

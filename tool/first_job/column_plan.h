#ifndef PARASOL_TOOL_FIRST_JOB_COLUMN_PLAN_H_
#define PARASOL_TOOL_FIRST_JOB_COLUMN_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tool/first_job/table_survey.h"

// Plans of a first job for a table's columns. All functions are pure.
namespace parasol {

// The use of a column that is not the label.
struct ColumnPlan {
  enum class Use {
    kNumber,    // a number of a dense input, normalized
    kCategory,  // ids by a vocabulary
    kHashed,    // ids by a hash
    kLeftOut,
  };
  Use use = Use::kLeftOut;
  std::string why = {};  // reason of kLeftOut, for a comment
  // Fields of kNumber.
  bool log1p = false;
  double mean = 0;
  double stddev = 1;
  std::optional<double> default_value = std::nullopt;
  // Fields of kCategory.
  std::vector<std::string> vocabulary = {};
  int64_t distinct = 0;
};

// Returns the plan of `column`, one of `records` records. `missing`: texts that
// stand for missing values.
ColumnPlan PlanColumn(const SurveyedColumn& column, int64_t records,
                      const std::vector<std::string>& missing);

// Returns the texts that stand for missing values: they are between numbers,
// and are usual for that ("NA", "?"), or rare.
std::vector<std::string> MissingTexts(const TableSurvey& survey);

// The kind of label that is learned.
enum class FirstTask { kGuess, kBinary, kClasses, kRegression };

struct LabelPlan {
  FirstTask task = FirstTask::kRegression;
  // Texts of the labels in the order of their classes; empty: labels are the
  // numbers of classes, or numbers.
  std::vector<std::string> classes = {};
  int64_t num_classes = 0;
  double mean = 0;  // mean of the labels of kRegression
  double stddev = 1;
};

// Returns the plan of the label. `task` is what is wanted, or kGuess.
//   InvalidArgument  the column's values are no labels of this task.
absl::StatusOr<LabelPlan> PlanLabel(const SurveyedColumn& column,
                                    const std::vector<std::string>& missing,
                                    FirstTask task);

}  // namespace parasol

#endif  // PARASOL_TOOL_FIRST_JOB_COLUMN_PLAN_H_

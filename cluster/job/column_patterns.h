#ifndef PARASOL_CLUSTER_JOB_COLUMN_PATTERNS_H_
#define PARASOL_CLUSTER_JOB_COLUMN_PATTERNS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/faults.h"
#include "proto/job.pb.h"

namespace parasol {

// A pattern of a job file and the columns that it stands for.
struct ColumnPattern {
  // Path of the message with the pattern: "model.input[0].dense.column[1]".
  std::string path;
  std::string pattern;               // "I*"
  std::vector<std::string> columns;  // names in the order of the data set
};

// The names of columns in a job's inputs with wildcards (column_wildcards.h),
// and the columns of the data set that have taken their place. This is done to
// a job file once, by the program that reads it: checkpoints, and the jobs that
// a chief gives to its tasks, have names alone.
class ColumnPatterns {
 public:
  // Returns true if any of the job's inputs has a name with a wildcard.
  static bool AreIn(const job::Job& job);

  // Replaces each column of an input whose name is a pattern by one for each
  // column of the training data (of `eval` if there are none) that matches, in
  // the data's order, with the other fields of the pattern's. A name that is
  // itself a column's stands for that column. Left out are columns of labels,
  // masks and weights, and those that the same input names without wildcards.
  // Reads the beginning of the data only where the job does not list the
  // columns.
  //   faults  "<field path>: …": a pattern matches no column, or one that an
  //           earlier pattern of the input has; a cross has a pattern; the data
  //           can't be read. The pattern then stays.
  static ColumnPatterns Resolve(const std::string& data_dir, job::Job& job,
                                Faults& faults);

  // The patterns that were resolved, in the order of the file.
  const std::vector<ColumnPattern>& all() const { return all_; }

  // Returns `path`, of a field in an input's column of the resolved job, or an
  // error that begins with one, with the column's number in the job file.
  std::string InFile(absl::string_view path) const;

  // Returns the pattern that the column of the resolved job has come from,
  // which `path` names; null if it was no pattern.
  const ColumnPattern* Of(absl::string_view path) const;

 private:
  std::vector<ColumnPattern> all_;
  // The numbers in the file of the resolved columns, by the path of the list:
  // "model.input[0].dense.column".
  std::map<std::string, std::vector<int>, std::less<>> numbers_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_COLUMN_PATTERNS_H_

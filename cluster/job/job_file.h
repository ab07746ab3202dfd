#ifndef PARASOL_CLUSTER_JOB_JOB_FILE_H_
#define PARASOL_CLUSTER_JOB_JOB_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

// The job file, a text-format parasol.job.Job. docs/job.md describes it for
// users.
namespace parasol {

inline constexpr size_t kMaxJobFileBytes = 4 << 20;

// Parses `text` as a job, without filling in defaults and without validating.
//   InvalidArgument  "<file_name>:<line>:<column>: …": a field that does not
//                    exist, a value of another type, a field or a choice twice.
//                    The column is the fault's or the next text's.
absl::StatusOr<job::Job> ParseJob(absl::string_view text,
                                  absl::string_view file_name);

// Returns the text of the job file at `path`; up to one byte more than
// kMaxJobFileBytes of it.
//   NotFound         there is no such file; the message names the path.
//   InvalidArgument  the path can't be read as a file.
absl::StatusOr<std::string> ReadJobFile(const std::string& path);

// A job to train, with its defaults filled in, and its resolved model.
struct LoadedJob {
  job::Job job;
  Graph graph;
};

// Applies `overrides` ("end.epochs=1") to a job in order, fills in the defaults
// and validates. The job's columns are names, as a checkpoint has them: nothing
// is taken for a pattern. Fails as ApplyOverride() and Validate() do.
absl::StatusOr<LoadedJob> LoadJob(job::Job job,
                                  absl::Span<const std::string> overrides);

// Reads the file at `path`, applies `overrides` ("end.epochs=1") in order,
// resolves patterns of columns by the data in `data_dir` (column_patterns.h),
// fills in the defaults and validates.
//   NotFound         there is no such file; the message names the path.
//   InvalidArgument  the path can't be read as a file; or as for ParseJob(),
//                    ApplyOverride(), ColumnPatterns::Resolve() and Validate().
absl::StatusOr<LoadedJob> LoadJobFile(const std::string& path,
                                      absl::Span<const std::string> overrides,
                                      const std::string& data_dir = "");

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_JOB_FILE_H_

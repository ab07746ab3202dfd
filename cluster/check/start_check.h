#ifndef PARASOL_CLUSTER_CHECK_START_CHECK_H_
#define PARASOL_CLUSTER_CHECK_START_CHECK_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "cluster/check/check_job_and_data.h"
#include "cluster/check/job_report.h"
#include "cluster/job/job_file.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

// The launcher, a chief and a worker begin a job with what `parasol check`
// does, in its words, on a sample of the data: a start takes no longer for
// large ones.
namespace parasol {

// A job that is to be started.
struct JobStart {
  std::string path = {};  // path of the job file
  std::vector<std::string> overrides = {};
  // `sample_bytes` and `max_examples` have no effect: they are a start's.
  CheckOptions options = {};
  // Directory of the checkpoints; empty: where the job says. One of a step that
  // is there means that the job goes on.
  std::string checkpoint_directory = {};
};

// Lines that the check of a start has found.
struct StartReport {
  std::vector<std::string> faults = {};    // one line each, with the place
  std::vector<std::string> warnings = {};  // one line each
  // Lines that say of which data a sample was looked at.
  std::vector<std::string> samples = {};
};

// Checks a job, and loads it as LoadJobFile() does: nullopt if it has a fault.
// Fills in `report`.
//   NotFound, InvalidArgument  the file can't be read.
absl::StatusOr<std::optional<LoadedJob>> CheckStart(const JobStart& start,
                                                    StartReport& report);

// Does the same, calls `say` with each line that is no fault, and prints all
// faults but the last as main() prints errors.
//   InvalidArgument  the last fault; or as for CheckStart().
absl::StatusOr<LoadedJob> LoadCheckedJob(
    const JobStart& start,
    absl::FunctionRef<void(const std::string& line, bool is_warning)> say);

// Logs a line of LoadCheckedJob(), as a task does.
void LogStartLine(const std::string& line, bool is_warning);

// Checks the training data of a job that a chief has given, with its defaults,
// and whose model is `graph`.
StartReport CheckTrainingData(const job::Job& job, const Graph& graph,
                              const std::string& data_dir);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_START_CHECK_H_

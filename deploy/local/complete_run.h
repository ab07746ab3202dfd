#ifndef PARASOL_DEPLOY_LOCAL_COMPLETE_RUN_H_
#define PARASOL_DEPLOY_LOCAL_COMPLETE_RUN_H_

#include <optional>
#include <string>

#include "cluster/job/job_file.h"
#include "deploy/local/run_result.h"

namespace parasol {

// Fills in the newest checkpoint in `checkpoint_dir`, if there is one. What has
// the name of a checkpoint and is none is passed over.
void AddCheckpoint(const std::string& checkpoint_dir, RunResult& result);

// Returns the result of a job that had been complete before: its last
// checkpoint is in `checkpoint_dir`, and an evaluation of it if
// `wants_evaluation`. Returns nullopt if something is left to do, or may be
// wrong with the directory, which the tasks then find.
std::optional<RunResult> FindCompleteRun(const LoadedJob& loaded,
                                         const std::string& checkpoint_dir,
                                         bool wants_evaluation);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_COMPLETE_RUN_H_

#ifndef PARASOL_CLUSTER_CHECKPOINT_FINAL_CHECKPOINT_H_
#define PARASOL_CLUSTER_CHECKPOINT_FINAL_CHECKPOINT_H_

#include <string>

#include "proto/job.pb.h"

namespace parasol {

// Returns true if the newest checkpoint in `directory` is the last one of this
// run and this job: no task has to wait for a chief that is gone.
// Returns false also if the directory can't be read. Reads the manifest alone.
bool HasFinalCheckpoint(const std::string& directory, const std::string& run_id,
                        const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_FINAL_CHECKPOINT_H_

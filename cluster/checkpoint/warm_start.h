#ifndef PARASOL_CLUSTER_CHECKPOINT_WARM_START_H_
#define PARASOL_CLUSTER_CHECKPOINT_WARM_START_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"

namespace parasol {

// A run that begins warm: its job has a warm_start.
struct WarmRun {
  std::string run_id;
  const job::Job& job;
  const std::vector<VariableSpec>& variables;
  const CheckpointContents& contents;
  absl::Time now;
};

// Opens what a job's warm_start names, and checks that it has all that it is to
// give. Fails as WriteWarmStart() does before it writes.
absl::Status CheckWarmStart(const job::WarmStart& warm_start,
                            const CheckpointContents& contents);

// Writes the checkpoint of step 0 from which all roles then go on as from any
// other: the values that job.warm_start says, initial values for what it
// excludes, initial slots, no updates. Logs what was and was not taken. Memory
// does not grow with the model.
//   InvalidArgument  the source can't be opened, or lacks something: names it.
//   any other        as for StoreCheckpoint().
absl::Status WriteWarmStart(const WarmRun& run, CheckpointStore& store,
                            CheckOwner check_owner);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_WARM_START_H_

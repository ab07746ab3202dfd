#ifndef PARASOL_WORKER_MIRRORED_GROUP_ROWS_H_
#define PARASOL_WORKER_MIRRORED_GROUP_ROWS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "worker/local/local_parameters.h"
#include "worker/mirrored/group_run.h"

namespace parasol {

// How a group's gradients of rows of sparse tables travel, and where they are
// applied. Used by the thread that makes steps. Errors are, besides the ones
// that functions name, those of GroupRun::AwaitLocal().
class GroupRows {
 public:
  virtual ~GroupRows() = default;

  // Begins a step of the group.
  virtual void Begin(GroupRun& run, int64_t step) = 0;
  // Has this worker's gradients travel, when all of its replicas have added
  // theirs.
  virtual absl::Status Leave(GroupRun& run, int64_t step) = 0;
  // Returns when the step of the variables may be made.
  virtual absl::Status Await(GroupRun& run, int64_t step) = 0;
  // Updates the tables that `parameters` have.
  virtual absl::Status Apply(LocalParameters& parameters) = 0;

  // A step that was made elsewhere, of rows alone, and the group that made it.
  struct Made {
    int64_t step = 0;
    int64_t group = 0;
  };
  // Returns the last one that was begun, if it was made: the variables' has to
  // follow.
  virtual std::optional<Made> made() const = 0;

  // Ends what waits for others than the group. May be called from any thread.
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_MIRRORED_GROUP_ROWS_H_

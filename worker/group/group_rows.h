#ifndef PARASOL_WORKER_GROUP_GROUP_ROWS_H_
#define PARASOL_WORKER_GROUP_GROUP_ROWS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "parameters/training_parameters.h"
#include "worker/group/group_run.h"
#include "worker/store/parameter_store.h"

namespace parasol {

// How a group's gradients of rows of sparse tables travel, and where they are
// applied. A step fails also with the errors of GroupRun::AwaitOwn().
class GroupRows {
 public:
  virtual ~GroupRows() = default;

  // Functions for the threads that compute. Pull() starts a pull of rows which
  // are elsewhere; null: the state has them. Take() takes the gradients of such
  // rows out of a push. HasDropped() returns true if gradients of a step that
  // is made were dropped there. AddTo() adds who owes an answer. Stop() ends
  // what waits for others than the group.
  virtual std::unique_ptr<TrainingParameters::Pending> Pull(
      const TrainingParameters::PullRequest& request) = 0;
  virtual void Take(TrainingParameters::PushRequest& request) = 0;
  virtual bool HasDropped(const TrainingParameters::SyncStep& step) const = 0;
  virtual void AddTo(TrainingParameters::Awaited& awaited) const = 0;
  virtual void Stop() = 0;

  // Begins a step of the group, on the thread that makes steps, as the rest.
  virtual void Begin(GroupRun& run, int64_t step) = 0;
  // Has this worker's gradients travel, when all of its replicas have added
  // theirs.
  virtual absl::Status Leave(GroupRun& run, int64_t step) = 0;
  // Returns when the step of the variables may be made.
  virtual absl::Status Await(GroupRun& run, int64_t step) = 0;
  // Updates the tables that `parameters` have.
  virtual absl::Status Apply(ParameterStore& parameters) = 0;

  // A step that was made elsewhere, of rows alone, and the group that made it.
  struct Made {
    int64_t step = 0;
    int64_t group = 0;
  };
  // Returns the last one that was begun, if it was made: the variables' has to
  // follow.
  virtual std::optional<Made> made() const = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_GROUP_ROWS_H_

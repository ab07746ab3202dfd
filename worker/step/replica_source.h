#ifndef PARASOL_WORKER_STEP_REPLICA_SOURCE_H_
#define PARASOL_WORKER_STEP_REPLICA_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cluster/client/chief_client.h"
#include "worker/step/claim_loop.h"
#include "worker/step/step_claims.h"

namespace parasol {

// The replicas that a worker computes in synchronous training.
struct ReplicaShare {
  // Version of the assignment of replicas; it changes whenever `replicas` does.
  int64_t version = 0;
  // Replicas of this worker, in ascending order; may be empty.
  std::vector<int> replicas;
  // Number of steps that the cluster is known to have completed, and the number
  // that may be begun now: up to the job's end, or a wait for an evaluation.
  int64_t completed_steps = 0;
  int64_t end_step = 0;
  // Names of the workers for whose gradients others wait: "worker/2".
  std::vector<std::string> awaited;
  // True if the job is complete: a step that is not will not be.
  bool is_over = false;
};

// Source of the replicas whose gradients a training loop computes.
class ReplicaSource {
 public:
  virtual ~ReplicaSource() = default;

  // Blocks until there is a replica to compute and a step to do, and returns
  // the worker's share. Returns nullopt when the job is complete, its last
  // checkpoint written.
  //   Cancelled           Stop() was called.
  //   FailedPrecondition  the job has failed elsewhere.
  //   any other           the chief refuses this worker for good.
  virtual absl::StatusOr<std::optional<ReplicaShare>> Await() = 0;

  // Returns the newest share without blocking, even if it has no replica or the
  // job has no more steps. Errors as for Await().
  virtual absl::StatusOr<ReplicaShare> Now() = 0;

  // Records that the cluster is known to have completed `steps` steps. Never
  // blocks.
  virtual void Complete(int64_t steps) = 0;

  // Records that this worker has pushed the gradients of all its replicas to
  // each of `steps` steps of the cluster. The number falls when it is given
  // another replica. Never blocks.
  virtual void Pushed(int64_t steps) = 0;

  // Ends Await() with Cancelled. May be called twice, from any thread.
  virtual void Stop() = 0;
};

// Asks the chief for this worker's share, and reports the completed steps, on a
// thread of its own. The share does not change while the chief does not answer.
// The calls of a worker without a replica wait at the chief, so that the worker
// takes up a replica the moment that it is assigned. Thread-safe.
class ChiefReplicaSource : public ReplicaSource, public StepClaims {
 public:
  struct Options : ClaimLoop::Options {
    // Called with each answer of the chief; must not block.
    std::function<void(const wire::ClaimStepsResponse&)> on_answer =
        [](const wire::ClaimStepsResponse&) {};
    // Returns the number of steps that this worker has the variables of: it
    // reports these, and no other number that it has heard of. Null: ps have
    // the variables.
    std::function<int64_t()> completed_steps;
    // Returns ClaimStepsRequest.broken_assignment.
    std::function<int64_t()> broken_assignment = [] { return 0; };
  };

  // `chief` must outlive the returned object.
  static std::unique_ptr<ChiefReplicaSource> Create(Options options,
                                                    ChiefClient& chief,
                                                    Clock& clock);

  // Overrides Stop() of both base classes.
  void Stop() override = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_REPLICA_SOURCE_H_

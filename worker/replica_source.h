#ifndef PARASOL_WORKER_REPLICA_SOURCE_H_
#define PARASOL_WORKER_REPLICA_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cluster/client/chief_client.h"
#include "worker/claim_loop.h"
#include "worker/step_claims.h"

namespace parasol {

// What a worker computes in synchronous training.
struct ReplicaShare {
  // Another one: the replicas are others.
  int64_t version = 0;
  // In ascending order; may be none.
  std::vector<int> replicas;
  // Steps that the cluster is known to have done, and does in all.
  int64_t completed_steps = 0;
  int64_t end_step = 0;
};

// Who says which replicas' gradients a training loop computes.
class ReplicaSource {
 public:
  virtual ~ReplicaSource() = default;

  // Blocks until there is a replica to compute and a step to do; nothing: the
  // job has no more steps.
  //   Cancelled           Stop() was called.
  //   FailedPrecondition  the job has failed elsewhere.
  //   any other           the chief refuses this worker for good.
  virtual absl::StatusOr<std::optional<ReplicaShare>> Await() = 0;

  // The same as it is, without blocking and without what is in the way; also
  // when the job is over. Errors as above.
  virtual absl::StatusOr<ReplicaShare> Now() = 0;

  // The cluster is known to have done so many steps. Never blocks.
  virtual void Complete(int64_t steps) = 0;

  // Ends Await() with Cancelled. May be called twice, from any thread.
  virtual void Stop() = 0;
};

// Asks the chief on a thread of its own, and reports the completed steps. While
// the chief does not answer, the share stays as it is. A worker without a
// replica has its calls wait at the chief, and takes one up the moment it is
// assigned. Thread-safe.
class ChiefReplicaSource : public ReplicaSource, public StepClaims {
 public:
  using Options = ClaimLoop::Options;

  // `chief` must outlive it.
  static std::unique_ptr<ChiefReplicaSource> Create(Options options,
                                                    ChiefClient& chief,
                                                    Clock& clock);

  // Of both bases.
  void Stop() override = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_REPLICA_SOURCE_H_

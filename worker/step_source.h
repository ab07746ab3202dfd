#ifndef PARASOL_WORKER_STEP_SOURCE_H_
#define PARASOL_WORKER_STEP_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cluster/client/chief_client.h"
#include "worker/claim_loop.h"
#include "worker/step_claims.h"

namespace parasol {

// Who says how many steps a training loop takes.
class StepSource {
 public:
  virtual ~StepSource() = default;

  // Whether Start() would return at once. A loop that is to wait completes
  // what it has started first: the job does not end, and Start() does not
  // return, while started steps are not completed.
  virtual bool CanStartNow() = 0;

  // Blocks until the loop may take another step: true; or until the job has no
  // more of them: false.
  //   Cancelled           Stop() was called.
  //   FailedPrecondition  the job has failed elsewhere.
  //   any other           the chief refuses this worker for good.
  virtual absl::StatusOr<bool> Start() = 0;

  // A started step is done. Never blocks.
  virtual void Complete() = 0;

  // Ends Start() with Cancelled. May be called twice, from any thread.
  virtual void Stop() = 0;
};

// The chief grants steps in small leases; this claims them ahead of need, and
// reports the completed ones, on a thread of its own. While the chief does not
// answer, the loop goes on until its lease is used up and then waits: how long
// is the ChiefSession's to decide, whose owner calls Stop(). A loop that waits
// with nothing left to report has its next claim wait at the chief, and takes
// the step the moment it is granted. Thread-safe.
class ChiefStepSource : public StepSource, public StepClaims {
 public:
  using Options = ClaimLoop::Options;

  // `chief` must outlive it.
  static std::unique_ptr<ChiefStepSource> Create(Options options,
                                                 ChiefClient& chief,
                                                 Clock& clock);

  // Of both bases.
  void Stop() override = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_SOURCE_H_

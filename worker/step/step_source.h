#ifndef PARASOL_WORKER_STEP_STEP_SOURCE_H_
#define PARASOL_WORKER_STEP_STEP_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cluster/client/chief_client.h"
#include "worker/step/claim_loop.h"
#include "worker/step/step_claims.h"

namespace parasol {

// Source of the steps that a training loop takes.
class StepSource {
 public:
  virtual ~StepSource() = default;

  // Returns true if Start() would return at once. A loop must complete its
  // started steps before it calls a Start() that blocks: neither does the job
  // end nor does Start() return while started steps are not completed.
  virtual bool CanStartNow() = 0;

  // Blocks until the loop may take another step, and returns the number of its
  // batch, from 0 over all epochs; returns nullopt when the job is complete,
  // its last checkpoint written.
  //   Cancelled           Stop() was called.
  //   FailedPrecondition  the job has failed elsewhere.
  //   any other           the chief refuses this worker for good.
  virtual absl::StatusOr<std::optional<int64_t>> Start() = 0;

  // Returns the numbers of the batches that the next calls of Start() will
  // probably return, in order; a loop decodes them ahead. Never blocks.
  virtual std::vector<int64_t> Upcoming() = 0;

  // Counts one started step as completed. Never blocks.
  virtual void Complete() = 0;

  // Ends Start() with Cancelled. May be called twice, from any thread.
  virtual void Stop() = 0;
};

// Claims steps from the chief, which grants them in small leases, and reports
// the completed ones, on a thread of its own. It claims steps before the loop
// needs them. While the chief does not answer, the loop goes on until its lease
// is used up and then waits. The owner of the ChiefSession decides how long,
// and calls Stop(). When the loop waits and nothing is left to report, the next
// claim waits at the chief, so that the loop takes a step the moment it is
// granted. Thread-safe.
class ChiefStepSource : public StepSource, public StepClaims {
 public:
  using Options = ClaimLoop::Options;

  // `chief` must outlive the returned object.
  static std::unique_ptr<ChiefStepSource> Create(Options options,
                                                 ChiefClient& chief,
                                                 Clock& clock);

  // Overrides Stop() of both base classes.
  void Stop() override = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_STEP_SOURCE_H_

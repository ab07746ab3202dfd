#ifndef PARASOL_WORKER_STEP_GRANTED_STEPS_H_
#define PARASOL_WORKER_STEP_GRANTED_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "proto/chief.pb.h"
#include "worker/step/step_grant.h"

namespace parasol {

// The steps that the chief has granted to this worker, each with its batch:
// what a claim tells the chief, and what the answer changes. Pure; not
// thread-safe.
//
// A chief numbers its grants to a worker with a version, and begins a new one
// when it took the worker's unfinished steps back: its lease had run out, or
// the chief is another one. The first answer of a version grants nothing, so
// the worker starts no more of the old steps; its next claim has the new
// version, and says how many of them it has started for good.
//
// It keeps the batches of the steps that it has started since the run's newest
// checkpoint but one, for a chief that resumes the run from either.
class GrantedSteps {
 public:
  // Largest number of ranges of batches that are kept; the oldest go.
  static constexpr size_t kMaxKept = 1 << 16;

  // Takes the next step and returns its batch; nullopt if the grant is used up.
  std::optional<int64_t> TryStart();
  // Counts one started step as completed: every shard has acknowledged its
  // gradients.
  void Complete() { steps_.Complete(); }

  // Writes the totals into a claim.
  void Tell(wire::ClaimStepsRequest& request);
  // Writes what a chief needs that may not know this worker. Of the chief
  // before it starts no more steps than it tells here.
  void Tell(wire::RegisterRequest& request);
  // Takes the answer to the newest claim, unless the worker has registered
  // since. Returns true if the chief waits for a claim of the answer's version
  // before it grants anything.
  bool Take(const wire::ClaimStepsResponse& response);

  // Returns the batches that TryStart() will probably return next, in order;
  // `limit` of them at most.
  std::vector<int64_t> Upcoming(size_t limit) const;

  int64_t started() const { return steps_.started(); }
  int64_t completed() const { return steps_.completed(); }
  // Returns the number of steps that can be started now.
  int64_t held() const { return steps_.held(); }

 private:
  // Neighbouring batches of steps that follow each other.
  struct Range {
    int64_t first = 0;
    int64_t count = 0;
  };

  void Keep(int64_t batch);
  // Removes the batches of the first `saved` steps from those that are kept.
  void Forget(int64_t saved);

  StepGrant steps_;
  int64_t version_ = 0;
  // True if it has registered since the newest claim.
  bool has_registered_ = false;
  std::optional<int64_t> clock_lead_;
  // Batches of the next steps, granted ones first.
  std::deque<int64_t> batches_;
  // Batches of the started steps from kept_begin_ + 1 on.
  std::deque<Range> kept_;
  int64_t kept_begin_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_GRANTED_STEPS_H_

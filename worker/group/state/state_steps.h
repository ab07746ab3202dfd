#ifndef PARASOL_WORKER_GROUP_STATE_STATE_STEPS_H_
#define PARASOL_WORKER_GROUP_STATE_STATE_STEPS_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace parasol {

// A state's place in a run: the greater of two is the one to go on with. Of two
// of the same step, on devices that round in no fixed way, others may have gone
// on with the one that was made in the later group.
struct StateVersion {
  static constexpr int64_t kNone = -1;

  int64_t step = kNone;
  int64_t epoch = 0;  // the group that made the last step; 0: loaded

  bool is_there() const { return step != kNone; }
  friend auto operator<=>(const StateVersion&, const StateVersion&) = default;
};

// The steps that a worker's state has had: who waits for the next ones, what
// holds them, and how they end. It has none of the state's values. Thread-safe.
class StateSteps {
 public:
  // Longest time that a hold lasts.
  static constexpr absl::Duration kHoldLimit = absl::Seconds(5);

  // `clock` must outlive this object.
  explicit StateSteps(Clock& clock) : clock_(clock) {}

  StateVersion version() const ABSL_LOCKS_EXCLUDED(mu_);
  void Set(const StateVersion& version) ABSL_LOCKS_EXCLUDED(mu_);
  // Sets the version of a state that takes the place of this one. Ends the
  // steps, with Unavailable, if it has other values and this one's values of
  // its step were pulled: gradients may be of these.
  void Replace(const StateVersion& version, bool has_other_values)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Notes that the values were pulled, and returns their step.
  //   FailedPrecondition  there is no state yet.
  absl::StatusOr<int64_t> NotePull() ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks until the state has had `step` steps, for up to `limit`. Returns OK
  // then, nullopt after the limit, and otherwise what was given to End().
  std::optional<absl::Status> Await(int64_t step, absl::Duration limit)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all waits with `why`, an error. The first one counts.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ended() const ABSL_LOCKS_EXCLUDED(mu_);

  // Lets the state have no more steps than it has, for kHoldLimit or until
  // EndCut(), and returns their number.
  //   FailedPrecondition  there is no state yet.
  absl::StatusOr<int64_t> Hold() ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until no hold forbids the next step.
  //   Cancelled  EndThoseThatStay() was called, and the state stays.
  absl::Status AwaitNoHold() ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until the state has had `step` steps, and lets it have no more until
  // EndCut(). Polls `is_cancelled`. Returns what was given to End(), and
  //   Cancelled  `is_cancelled` returned true.
  absl::Status AwaitCut(int64_t step, const std::function<bool()>& is_cancelled)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the hold: the state was copied, or could not be. With `stays` there
  // are no more steps until GoOn().
  void EndCut(bool stays) ABSL_LOCKS_EXCLUDED(mu_);
  // Allows steps again after a cut with which the state stays.
  void GoOn() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if a cut has had the state stay.
  bool stays() const ABSL_LOCKS_EXCLUDED(mu_);
  // Has AwaitNoHold() return Cancelled while the state stays, instead of
  // waiting: the worker is about to end.
  void EndThoseThatStay() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The steps that the state may have had, until a time: the infinite future if
  // it stays.
  struct HeldAt {
    int64_t step = 0;
    absl::Time until = absl::InfinitePast();
  };

  bool IsStaying() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return held_ && held_->until == absl::InfiniteFuture();
  }

  Clock& clock_;

  mutable absl::Mutex mu_;
  StateVersion version_ ABSL_GUARDED_BY(mu_);
  // The step of the values that were pulled last.
  int64_t pulled_ ABSL_GUARDED_BY(mu_) = StateVersion::kNone;
  std::optional<HeldAt> held_ ABSL_GUARDED_BY(mu_);
  bool ends_those_that_stay_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status ended_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_STATE_STATE_STEPS_H_

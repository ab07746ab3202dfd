#ifndef PARASOL_ML_INPUT_OBJECT_ATTEMPTS_H_
#define PARASOL_ML_INPUT_OBJECT_ATTEMPTS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace parasol {

// Attempts of what may pass: a network that is cut, a server that is busy.
class Attempts {
 public:
  explicit Attempts(Clock& clock = Clock::Real()) : clock_(clock) {}

  // Calls `attempt` until it returns anything but Unavailable, kMost times at
  // most, and waits longer and longer in between, 25 s in all, or as long as a
  // web server wants (WebClient::WaitOf()), but never longer than kMostWait.
  // None follows the first kFewest when they have taken kMostTime: some wait
  // minutes for an answer, and some bring or send for long before they fail.
  // Logs each one that failed. Returns what it returned last, with how
  // often it was tried.
  absl::Status Make(absl::FunctionRef<absl::Status()> attempt) const;

  static constexpr int kFewest = 3;
  static constexpr int kMost = 8;
  static constexpr absl::Duration kMostWait = absl::Minutes(1);
  static constexpr absl::Duration kMostTime = absl::Minutes(5);

 private:
  Clock& clock_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_ATTEMPTS_H_

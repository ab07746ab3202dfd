#ifndef PARASOL_CHIEF_KUBEFLOW_POST_SCHEDULE_H_
#define PARASOL_CHIEF_KUBEFLOW_POST_SCHEDULE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/chief.pb.h"

namespace parasol {

// Decides when the chief posts its progress, and what the log says of it
// (pure). A server that refuses or does not answer is asked less and less
// often.
class PostSchedule {
 public:
  // Time between two posts.
  static constexpr absl::Duration kInterval = absl::Seconds(10);
  // Time before a change of the phase is posted: a server may be asked every
  // five seconds.
  static constexpr absl::Duration kLeastInterval = absl::Seconds(5);
  // Time between two attempts after many failures.
  static constexpr absl::Duration kMaxBackoff = absl::Minutes(5);
  // Time for which a failure that comes again, after posts that were taken, is
  // not in the log again.
  static constexpr absl::Duration kQuiet = absl::Minutes(10);

  // Returns true if a status in this phase is to be posted now.
  bool IsDue(wire::JobPhase phase, absl::Time now) const;

  // Returns true if the status in this phase is posted once more before the
  // process ends: the server took none in it, and answered the last post if
  // there was one. A token that it refused may be another one now.
  bool IsDueAtTheEnd(wire::JobPhase phase) const;

  // Takes the result of a post that was begun at `begun` and ended at `now`.
  // Returns a line for the log if it has none about such a result: failures
  // whose texts differ in numbers alone are one.
  std::optional<std::string> Took(wire::JobPhase phase, absl::Time begun,
                                  absl::Time now, const absl::Status& result);

 private:
  // Returns true if the log is to have a line about the result, and notes that
  // it has.
  bool IsNews(const absl::Status& result, absl::Time now);

  std::optional<absl::Time> begun_;
  // Phase that the server took last.
  std::optional<wire::JobPhase> posted_phase_;
  absl::Time next_ = absl::InfinitePast();
  // Time waited for after a failure; zero: there was none.
  absl::Duration backoff_ = absl::ZeroDuration();
  std::optional<absl::Status> last_;
  // The log's last line: true if it was about a post that was taken; and the
  // last failure that it has.
  std::optional<bool> said_ok_;
  std::string said_failure_;
  absl::Time failure_said_at_ = absl::InfinitePast();
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_KUBEFLOW_POST_SCHEDULE_H_

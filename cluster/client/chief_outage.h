#ifndef PARASOL_CLUSTER_CLIENT_CHIEF_OUTAGE_H_
#define PARASOL_CLUSTER_CLIENT_CHIEF_OUTAGE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace parasol {

// The time for which the chief has not answered: says so in the log, and when
// to give up. Not thread-safe.
class ChiefOutage {
 public:
  // `limit` begins at `now`, and anew with each answer.
  ChiefOutage(absl::Duration limit, absl::Time now);

  void Answered(absl::Time now);

  // Notes that a call has failed with `error`.
  //   Unavailable  `limit` has passed.
  absl::Status Failed(const absl::Status& error, absl::Time now);

 private:
  const absl::Duration limit_;
  absl::Time last_answer_;
  absl::Time next_log_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_CHIEF_OUTAGE_H_

#ifndef PARASOL_PARAMETERS_CLIENT_PEER_WAIT_REPORT_H_
#define PARASOL_PARAMETERS_CLIENT_PEER_WAIT_REPORT_H_

#include <cstddef>
#include <vector>

#include "absl/time/time.h"
#include "cluster/progress/recent_totals.h"
#include "parameters/training_parameters.h"
#include "proto/chief.pb.h"

namespace parasol {

// Ps of which a heartbeat tells what they are waited for.
inline constexpr size_t kMaxReportedWaits = 8;

// Tells the chief which ps a worker waits for: those that can't be reached
// first, then those that owed an answer for the largest share of the last
// seconds. Pure.
class PeerWaitReport {
 public:
  void Report(std::vector<TrainingParameters::PeerWait> waits, absl::Time now,
              wire::HeartbeatRequest& request);

 private:
  RecentTotals recent_;
  size_t peers_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_PEER_WAIT_REPORT_H_

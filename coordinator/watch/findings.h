#ifndef PARASOL_COORDINATOR_WATCH_FINDINGS_H_
#define PARASOL_COORDINATOR_WATCH_FINDINGS_H_

#include "proto/chief.pb.h"

namespace parasol {

// Adds to a job's status what bounds it now, the most important first, from
// what the status says of the tasks: what stops the job, then what its steps
// wait for. Adds nothing once the job is complete. Takes a while for a thousand
// tasks. Pure.
void AddFindings(wire::JobStatus& status);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_WATCH_FINDINGS_H_

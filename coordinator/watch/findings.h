#ifndef PARASOL_COORDINATOR_WATCH_FINDINGS_H_
#define PARASOL_COORDINATOR_WATCH_FINDINGS_H_

#include "proto/chief.pb.h"

namespace parasol {

// Sets the findings of a job's status to what bounds it now, the most important
// first, from what the status says of the tasks: what stops the job, then what
// its steps wait for. A finding that is there already, with the trouble's
// text, says of what kind that is; without one it is a checkpoint's. Leaves
// none once the job is complete. Takes a while for a thousand tasks. Pure.
void AddFindings(wire::JobStatus& status);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_WATCH_FINDINGS_H_

#ifndef PARASOL_COORDINATOR_WATCH_STEP_BOUND_H_
#define PARASOL_COORDINATOR_WATCH_STEP_BOUND_H_

#include <vector>

#include "proto/chief.pb.h"

namespace parasol {

// Returns what bounds the steps of a job that trains, the most important first:
// a worker that is slower than the others, with the part of its steps that
// makes it so, or the part in which all spend most of their time, with the ps
// that they wait for. Empty while no worker has made a step. Pure.
std::vector<wire::Finding> StepBounds(const wire::JobStatus& status);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_WATCH_STEP_BOUND_H_

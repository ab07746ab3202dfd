#ifndef PARASOL_WORKER_GROUP_STEP_GROUP_H_
#define PARASOL_WORKER_GROUP_STEP_GROUP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/collective/collective.h"
#include "proto/chief.pb.h"

namespace parasol {

// A group of workers as the chief names it, with the place of one of them.
struct StepGroup {
  int64_t version = 0;
  CollectiveGroup collective;
  std::vector<std::string> names;  // the ranks'
  std::vector<int> replicas;       // replicas of this worker
  // True if this worker is one of them; otherwise it has no rank.
  bool is_member = false;
};

// Returns the group that the chief's answer to a claim names, for the worker of
// this incarnation. The first member is the last rank: a rank connects to those
// before it, and worker 0, whose address its chief has, need not be reached.
StepGroup GroupOf(const wire::ClaimStepsResponse& answer, uint64_t incarnation);

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_STEP_GROUP_H_

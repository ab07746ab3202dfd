#ifndef PARASOL_CLUSTER_CHECK_STEP_SIZE_H_
#define PARASOL_CLUSTER_CHECK_STEP_SIZE_H_

#include <cstdint>
#include <string>

#include "proto/job.pb.h"

namespace parasol {

// Returns the number of examples of a step of `job`, with the numbers of who
// trains it: a batch, or one of each replica in synchronous training. Pure.
int64_t ExamplesOfStep(const job::Job& job);

// Returns what is to be said if a step has more examples than the training data
// have, which is `examples`; "" if it has not. Pure.
std::string LargeStepWarning(const job::Job& job, int64_t examples);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_STEP_SIZE_H_

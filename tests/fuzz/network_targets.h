#ifndef PARASOL_TESTS_FUZZ_NETWORK_TARGETS_H_
#define PARASOL_TESTS_FUZZ_NETWORK_TARGETS_H_

#include <vector>

#include "tests/fuzz/readers/fuzz_target.h"

namespace parasol {

// Returns the readers of what a worker and a ps send each other: messages to a
// ps, by gRPC and on a payload lane, and replies to a worker.
std::vector<FuzzTarget> NetworkTargets();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_NETWORK_TARGETS_H_

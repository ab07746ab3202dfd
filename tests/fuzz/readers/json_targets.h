#ifndef PARASOL_TESTS_FUZZ_READERS_JSON_TARGETS_H_
#define PARASOL_TESTS_FUZZ_READERS_JSON_TARGETS_H_

#include <vector>

#include "tests/fuzz/readers/fuzz_target.h"

namespace parasol {

// Returns the readers of JSON: requests of `parasol serve`, TF_CONFIG,
// manifests of published versions, and any JSON.
std::vector<FuzzTarget> JsonTargets();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_READERS_JSON_TARGETS_H_

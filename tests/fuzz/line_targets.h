#ifndef PARASOL_TESTS_FUZZ_LINE_TARGETS_H_
#define PARASOL_TESTS_FUZZ_LINE_TARGETS_H_

#include <vector>

#include "tests/fuzz/readers/fuzz_target.h"

namespace parasol {

// Returns the readers of lines of JSON: of a checkpoint directory, and of a
// log.
std::vector<FuzzTarget> LineTargets();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_LINE_TARGETS_H_

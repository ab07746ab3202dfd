#ifndef PARASOL_TESTS_FUZZ_READERS_URI_TARGETS_H_
#define PARASOL_TESTS_FUZZ_READERS_URI_TARGETS_H_

#include <vector>

#include "tests/fuzz/readers/fuzz_target.h"

namespace parasol {

// Returns the readers of names of files that are not on the machine, and of
// heads of web servers' answers.
std::vector<FuzzTarget> UriTargets();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_READERS_URI_TARGETS_H_

#ifndef PARASOL_TESTS_FUZZ_READERS_DATA_TARGETS_H_
#define PARASOL_TESTS_FUZZ_READERS_DATA_TARGETS_H_

#include <vector>

#include "tests/fuzz/readers/fuzz_target.h"

namespace parasol {

// Returns the readers of all formats of data sets, and of gzip below them. The
// first byte of an input says what is done about damage.
std::vector<FuzzTarget> DataTargets();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_READERS_DATA_TARGETS_H_

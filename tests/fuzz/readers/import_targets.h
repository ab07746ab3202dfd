#ifndef PARASOL_TESTS_FUZZ_READERS_IMPORT_TARGETS_H_
#define PARASOL_TESTS_FUZZ_READERS_IMPORT_TARGETS_H_

#include <vector>

#include "tests/fuzz/readers/fuzz_target.h"

namespace parasol {

// Returns the readers of other programs' tensors. Formats with checksums have a
// second target, behind them: what a file says that was made on purpose.
std::vector<FuzzTarget> ImportTargets();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_READERS_IMPORT_TARGETS_H_

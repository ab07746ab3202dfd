#ifndef PARASOL_TESTS_FUZZ_READERS_RANK_TARGETS_H_
#define PARASOL_TESTS_FUZZ_READERS_RANK_TARGETS_H_

#include <vector>

#include "tests/fuzz/readers/fuzz_target.h"

namespace parasol {

// Returns the readers of what ranks of a group send each other, and of the
// first bytes of a connection.
//
// "rank" is rank 0 of a group of three, which takes part in operations while
// the two others send arbitrary messages; the input says which operations begin
// and what is sent. Ends the process when an operation completes twice or not
// at all.
std::vector<FuzzTarget> RankTargets();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_READERS_RANK_TARGETS_H_

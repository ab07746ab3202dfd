#ifndef PARASOL_TESTS_FUZZ_READERS_CHECKPOINT_TARGETS_H_
#define PARASOL_TESTS_FUZZ_READERS_CHECKPOINT_TARGETS_H_

#include <vector>

#include "tests/fuzz/readers/fuzz_target.h"

namespace parasol {

// Returns the readers of a checkpoint's files: the manifest, and a shard's
// file. The manifest's checksums of what they read are right.
std::vector<FuzzTarget> CheckpointTargets();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_READERS_CHECKPOINT_TARGETS_H_

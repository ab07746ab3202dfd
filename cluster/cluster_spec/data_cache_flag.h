#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_DATA_CACHE_FLAG_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_DATA_CACHE_FLAG_H_

#include <string>

#include "absl/flags/declare.h"

// --data_cache_dir, a flag of the programs that read data, or write
// checkpoints.
ABSL_DECLARE_FLAG(std::string, data_cache_dir);

namespace parasol {

// Has this process keep copies of objects where the flag says, and checkpoints
// in object stores. main() calls it when it has read its flags.
void ApplyDataCacheFlag();

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_DATA_CACHE_FLAG_H_

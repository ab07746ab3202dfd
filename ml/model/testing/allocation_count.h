#ifndef PARASOL_ML_MODEL_TESTING_ALLOCATION_COUNT_H_
#define PARASOL_ML_MODEL_TESTING_ALLOCATION_COUNT_H_

#include "absl/functional/function_ref.h"

namespace parasol {

// Returns how often `body` allocates memory on this thread, but for the list of
// arguments that oneDNN makes for itself at every execution. Replaces malloc()
// and its like in the programs that are linked with it; always 0 under a
// sanitizer, which allocates itself.
int CountAllocations(absl::FunctionRef<void()> body);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_TESTING_ALLOCATION_COUNT_H_

#ifndef PARASOL_WORKER_STORE_BATCH_PART_H_
#define PARASOL_WORKER_STORE_BATCH_PART_H_

#include <cstdint>

#include "ml/input/feature/batch.h"

namespace parasol {

// Copies the examples [first, first + count) of `from`, without the texts that
// are kept. Targets keep the scale of the whole batch. Memory of `to` is used
// again.
void CopyPart(const Batch& from, int64_t first, int64_t count, Batch& to);

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_BATCH_PART_H_

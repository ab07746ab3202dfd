#ifndef PARASOL_TOOL_CHECKPOINT_ROW_IDS_H_
#define PARASOL_TOOL_CHECKPOINT_ROW_IDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

// Ids that are compared at a time: 512 MiB of memory, about. A larger table is
// read several times.
inline constexpr size_t kComparedIds = size_t{1} << 25;

// Calls `only_in_a` and `only_in_b` with each id that has a row in one of two
// checkpoints alone: of a table with an eviction, the rows that have gone and
// those that have come. Ids come in parts by their hashes, and ascend in each:
// A's first, then B's.
//   NotFound  a checkpoint has no such table; the message names those it has.
// and errors of reading the checkpoints.
absl::Status CompareRowIds(const CheckpointReader& a, const CheckpointReader& b,
                           absl::string_view table,
                           absl::FunctionRef<void(uint64_t id)> only_in_a,
                           absl::FunctionRef<void(uint64_t id)> only_in_b,
                           size_t ids_at_a_time = kComparedIds);

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECKPOINT_ROW_IDS_H_

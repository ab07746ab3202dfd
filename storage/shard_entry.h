#ifndef PARASOL_STORAGE_SHARD_ENTRY_H_
#define PARASOL_STORAGE_SHARD_ENTRY_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace parasol {

// Which array of a variable: its value, or one of the optimizer's slots.
inline constexpr int kValueArray = 0;  // slot i is array 1 + i

// Which pushes of one worker a shard has applied: see ps/shard/dedup_window.h.
struct DedupEntry {
  uint64_t worker_incarnation = 0;
  std::string window;  // opaque here
};

// Rows of a sparse table: row i is rows[i * n…] of n = rows.size() / ids.size()
// float32, the row's values and then each slot's. Owned by the caller.
struct RowBatch {
  int64_t updates = 0;  // that the table has had
  absl::Span<const uint64_t> ids = {};
  absl::Span<const float> rows = {};
};

// Takes a batch, which is gone when it returns. An error ends the reading.
using RowVisit = absl::FunctionRef<absl::Status(const RowBatch& batch)>;

}  // namespace parasol

#endif  // PARASOL_STORAGE_SHARD_ENTRY_H_

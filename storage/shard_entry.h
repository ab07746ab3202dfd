#ifndef PARASOL_STORAGE_SHARD_ENTRY_H_
#define PARASOL_STORAGE_SHARD_ENTRY_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace parasol {

// Number of a variable's array: its value, or one of the optimizer's slots.
inline constexpr int kValueArray = 0;  // slot i is array 1 + i

// The pushes of one worker that a shard has applied: see
// ps/shard/dedup_window.h.
struct DedupEntry {
  uint64_t worker_incarnation = 0;
  std::string window;  // opaque to storage/
};

// Rows of a sparse table, owned by the caller. With n = rows.size() /
// ids.size(), row i is the n float32 from rows[i * n] on: the row's values and
// then each slot's.
struct RowBatch {
  int64_t updates = 0;  // updates of the table so far
  absl::Span<const uint64_t> ids = {};
  absl::Span<const float> rows = {};
  // The update of the table that touched each row last; empty: not known.
  absl::Span<const int64_t> touched = {};
};

// How often ids without a row have occurred, owned by the caller, and the
// update of the table that touched each count last; `touched` may be empty.
struct CountBatch {
  absl::Span<const uint64_t> ids = {};
  absl::Span<const uint32_t> counts = {};
  absl::Span<const int64_t> touched = {};
};

// Function that takes a batch; the batch is valid only during the call. An
// error ends the reading.
using RowVisit = absl::FunctionRef<absl::Status(const RowBatch& batch)>;
using CountVisit = absl::FunctionRef<absl::Status(const CountBatch& batch)>;
// Function that takes ids whose rows have gone. An error ends the reading.
using RemovedVisit =
    absl::FunctionRef<absl::Status(absl::Span<const uint64_t> ids)>;

}  // namespace parasol

#endif  // PARASOL_STORAGE_SHARD_ENTRY_H_

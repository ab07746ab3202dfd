#ifndef PARASOL_STORAGE_ROW_ENTRY_H_
#define PARASOL_STORAGE_ROW_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/shard_entry.h"

// The values of the entries of a table's rows, counts and removed ids in a
// shard file; storage/FORMAT.md has their grammar.
namespace parasol {

// Encodes `batch` into `out`, replacing its contents and reusing its memory.
// Returns false if the batch's rows are of unequal size, or too many.
bool EncodeRows(const RowBatch& batch, std::string& out);

// The header of an entry's rows.
struct RowsHeader {
  int64_t updates = 0;
  uint32_t count = 0;
  uint32_t floats = 0;  // floats of one row
  bool timed = false;   // true: it says when rows were touched
};

// Returns the header of `value`; nullopt if `value` is not a rows entry.
std::optional<RowsHeader> ParseRowsHeader(absl::string_view value);

// Holds the rows of one entry at a time. The rows are copies, because the bytes
// of a file are not aligned. Keeps its memory from entry to entry.
class DecodedRows {
 public:
  // Decodes the rows of `value`, whose header is `header`.
  void Assign(const RowsHeader& header, absl::string_view value);

  RowBatch batch() const {
    return {
        .updates = updates_, .ids = ids_, .rows = rows_, .touched = touched_};
  }

 private:
  int64_t updates_ = 0;
  std::vector<uint64_t> ids_;
  std::vector<float> rows_;
  std::vector<int64_t> touched_;
};

// Does for counts what EncodeRows() does for rows. Returns false if the batch's
// arrays don't fit together, or are empty.
bool EncodeCounts(const CountBatch& batch, std::string& out);

// Holds the counts of one entry at a time, as DecodedRows does rows.
class DecodedCounts {
 public:
  // Returns false if `value` is not a counts entry.
  bool Assign(absl::string_view value);

  CountBatch batch() const {
    return {.ids = ids_, .counts = counts_, .touched = touched_};
  }

 private:
  std::vector<uint64_t> ids_;
  std::vector<uint32_t> counts_;
  std::vector<int64_t> touched_;
};

// Encodes removed ids, at least one.
void EncodeRemoved(absl::Span<const uint64_t> ids, std::string& out);
// Returns the ids; nullopt if `value` is not an entry of removed ids.
std::optional<std::vector<uint64_t>> DecodeRemoved(absl::string_view value);

}  // namespace parasol

#endif  // PARASOL_STORAGE_ROW_ENTRY_H_

#ifndef PARASOL_STORAGE_ROW_ENTRY_H_
#define PARASOL_STORAGE_ROW_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/shard_entry.h"

// The value of a rows entry in a shard file; storage/FORMAT.md has its grammar.
namespace parasol {

// Encodes `batch` into `out`, replacing its contents and reusing its memory.
// Returns false if the batch's rows are of unequal size, or too many.
bool EncodeRows(const RowBatch& batch, std::string& out);

// The header of an entry's rows.
struct RowsHeader {
  int64_t updates = 0;
  uint32_t count = 0;
  uint32_t floats = 0;  // floats of one row
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
    return {.updates = updates_, .ids = ids_, .rows = rows_};
  }

 private:
  int64_t updates_ = 0;
  std::vector<uint64_t> ids_;
  std::vector<float> rows_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_ROW_ENTRY_H_

#ifndef PARASOL_STORAGE_ROW_ENTRY_H_
#define PARASOL_STORAGE_ROW_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/shard_entry.h"

// The value of a rows entry: storage/FORMAT.md has its grammar.
namespace parasol {

// Replaces `out`, whose memory it uses. False: the batch's rows are not of
// equal size, or too many.
bool EncodeRows(const RowBatch& batch, std::string& out);

// What an entry says about its rows.
struct RowsHeader {
  int64_t updates = 0;
  uint32_t count = 0;
  uint32_t floats = 0;  // of one row
};

// nullopt: the bytes are no such value.
std::optional<RowsHeader> ParseRowsHeader(absl::string_view value);

// The rows of entries, one after the other: copies, as the bytes of a file are
// aligned to nothing. Keeps its memory.
class DecodedRows {
 public:
  // `value` has the header `header`.
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

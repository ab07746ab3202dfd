#ifndef PARASOL_STORAGE_TENSOR_FILES_SORTED_TABLE_H_
#define PARASOL_STORAGE_TENSOR_FILES_SORTED_TABLE_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A table file of LevelDB, as TensorFlow writes the index of a checkpoint:
//
//   table   := (block trailer)* footer      data blocks, metaindex, index
//   block   := entry* restart{n} n          restart, n: uint32
//   entry   := shared unshared size key value    varints, then bytes
//   trailer := type crc                     type 0: as it is; 1: Snappy
//   footer  := metaindex index padding magic     48 bytes; the handles of
//   blocks
//
// The crc is masked, and of block and type. The index has for each data block a
// key at or behind its last one, and its handle (offset and size, varints).
namespace parasol {

// Returns a table of the entries, without compression. A block is closed once
// it has `block_bytes`; TensorFlow's default.
std::string EncodeSortedTable(const std::map<std::string, std::string>& entries,
                              size_t block_bytes = 256 << 10);

// Returns the entries of a table, of which all blocks are checked.
//   DataLoss  it is no such table, or it is damaged.
absl::StatusOr<std::map<std::string, std::string>> DecodeSortedTable(
    absl::string_view table);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_SORTED_TABLE_H_

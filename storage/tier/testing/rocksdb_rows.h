#ifndef PARASOL_STORAGE_TIER_TESTING_ROCKSDB_ROWS_H_
#define PARASOL_STORAGE_TIER_TESTING_ROCKSDB_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace parasol {

// Rows in a RocksDB, as a tier might have them, for benchmarks: without a log
// and compression, read past the page cache, with `memory_bytes` of cache for
// blocks. Not thread-safe.
class RocksDbRows {
 public:
  // Makes a database in `directory`, which must not be there yet.
  static absl::StatusOr<std::unique_ptr<RocksDbRows>> Create(
      const std::string& directory, size_t memory_bytes, size_t floats);
  ~RocksDbRows();

  // Reads the rows of `ids` with one MultiGet; `rows` has ids.size() x floats.
  // Those that are missing are 0.
  absl::Status Get(absl::Span<const uint64_t> ids, absl::Span<float> rows);
  absl::Status Put(absl::Span<const uint64_t> ids,
                   absl::Span<const float> rows);

 private:
  struct Database;

  RocksDbRows(std::unique_ptr<Database> database, size_t floats);

  const std::unique_ptr<Database> database_;
  const size_t floats_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TIER_TESTING_ROCKSDB_ROWS_H_

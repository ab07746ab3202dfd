#ifndef PARASOL_STORAGE_SHARD_WRITER_H_
#define PARASOL_STORAGE_SHARD_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "storage/shard_entry.h"

namespace parasol {

// Writes one shard's file of a checkpoint; the format is storage/FORMAT.md.
// After an error the file is of no use. Not thread-safe.
class ShardWriter {
 public:
  // Replaces what is at `path`.
  //   NotFound           the directory is not there (does this task see the
  //                      same file system as the chief?): names the path.
  //   Unavailable, PermissionDenied, ResourceExhausted  name it, too; all
  //                      calls below return them as well.
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(
      const std::string& path);
  virtual ~ShardWriter() = default;

  // Elements [first, first + values.size()) of the flattened variable's array.
  // `updates` is the number of updates that these elements have had.
  //   InvalidArgument  not in ascending order of (variable, array, first), or
  //                    the elements overlap the last ones.
  virtual absl::Status AddElements(absl::string_view variable, int array,
                                   int64_t first, int64_t updates,
                                   absl::Span<const float> values) = 0;

  // After all elements: rows of a sparse table, any of them. Tables in
  // ascending order of their names; a table's batches follow one another, in
  // any order. A batch without rows keeps the table's number of updates.
  //   InvalidArgument  a table comes after a later one, or rows and ids don't
  //                    fit together.
  virtual absl::Status AddRows(absl::string_view table,
                               const RowBatch& batch) = 0;

  // After all rows, in ascending order of (shard, num_shards, worker
  // incarnation). `shard` of `num_shards` wrote it: a window means nothing to
  // another sharding.
  virtual absl::Status AddDedup(uint32_t shard, uint32_t num_shards,
                                const DedupEntry& entry) = 0;

  // Writes what is left and makes the file durable. Its plain name, size and
  // crc32c: what the checkpoint's manifest says about it. Called once, last.
  virtual absl::StatusOr<durable::CheckpointFile> Finish() = 0;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_SHARD_WRITER_H_

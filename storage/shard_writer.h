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
#include "storage/shard_index.h"

namespace parasol {

// Writes one shard's file of a checkpoint; storage/FORMAT.md describes the
// format. After an error the file must not be used. Not thread-safe.
class ShardWriter {
 public:
  // Creates the file at `path`, or replaces it. A file whose path is a URI of a
  // store is there when it is finished; until then it lies in a folder of this
  // machine, whose errors name that.
  //   NotFound           the directory does not exist; the message names the
  //                      path. Perhaps this task does not see the same file
  //                      system as the chief.
  //   Unavailable, PermissionDenied, ResourceExhausted  the file system
  //                      refuses; the message names the path. All calls below
  //                      return these errors, too.
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(
      const std::string& path);
  virtual ~ShardWriter() = default;

  // Names the shard whose file this is: a reader of the same shard of as many
  // then needs no other file. Must be called before Finish(), if at all.
  virtual void SetWriter(const ShardNumber& shard) = 0;

  // Names the place in the shard's journal from which on the file may lack
  // records. Must be called before Finish(), if at all.
  virtual void SetJournal(const JournalPlace& place) = 0;

  // Makes the file an increment: it has what has changed since the file that
  // `base` describes, which another shard file never is. Elements then come as
  // whole entries of that file. Must be called before Finish(), if at all.
  virtual void SetBase(const IncrementBase& base) = 0;

  // Writes elements [first, first + values.size()) of the flattened variable's
  // array. `updates` is the number of updates that these elements have had.
  //   InvalidArgument  not in ascending order of (variable, array, first), or
  //                    the elements overlap the last ones.
  virtual absl::Status AddElements(absl::string_view variable, int array,
                                   int64_t first, int64_t updates,
                                   absl::Span<const float> values) = 0;

  // Writes rows of a sparse table, any of them. Must be called after all
  // elements, for the tables in ascending order of their names. A table's
  // batches follow one another, in any order. A batch without rows keeps the
  // table's number of updates.
  //   InvalidArgument  a table comes after a later one, rows and ids don't fit
  //                    together, or rows of one table have different widths.
  virtual absl::Status AddRows(absl::string_view table,
                               const RowBatch& batch) = 0;

  // Writes ids whose rows have gone since the base, at least one. Must be
  // called before all elements, for the tables in ascending order of their
  // names.
  virtual absl::Status AddRemoved(absl::string_view table,
                                  absl::Span<const uint64_t> ids) = 0;

  // Writes counts of ids that have no row. Must be called after all rows, for
  // the tables in ascending order of their names.
  //   InvalidArgument  a table comes after a later one, or the batch's arrays
  //                    don't fit together, or are empty.
  virtual absl::Status AddCounts(absl::string_view table,
                                 const CountBatch& batch) = 0;

  // Writes a dedup entry. Must be called after all counts, in ascending order
  // of (shard, num_shards, worker incarnation). The entry belongs to shard
  // `shard` of `num_shards`: a cluster with another number of shards can't use
  // it.
  virtual absl::Status AddDedup(uint32_t shard, uint32_t num_shards,
                                const DedupEntry& entry) = 0;

  // Writes the rest and makes the file durable. Returns the manifest's entry
  // for the file: its plain name, size and crc32c. Must be called once, last.
  virtual absl::StatusOr<durable::CheckpointFile> Finish() = 0;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_SHARD_WRITER_H_

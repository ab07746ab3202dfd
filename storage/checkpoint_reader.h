#ifndef PARASOL_STORAGE_CHECKPOINT_READER_H_
#define PARASOL_STORAGE_CHECKPOINT_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "storage/shard_entry.h"
#include "storage/shard_file.h"
#include "storage/shard_index.h"

namespace parasol {

// The place in a shard's journal that the shard's files name.
struct ShardJournal {
  ShardNumber shard;
  JournalPlace place;
};

// Reads a complete checkpoint that any number of shards wrote, whole files and
// increments: of each file its index, and then the blocks that are asked for,
// whose checksums are verified. Keeps the files that it has opened open: a
// checkpoint that is pruned meanwhile stays readable on file systems that keep
// open files, as Linux's own do. Files of a store are brought to this machine
// when they are opened, and stay as long as the reader does, or one that has
// got them from it. Thread-safe.
class CheckpointReader {
 public:
  // Verifies the manifest, every file's size, and the indexes.
  //   NotFound           no such directory, no manifest in it, or it was
  //                      removed meanwhile.
  //   DataLoss           something is missing, truncated or altered; the
  //                      message names the file.
  //   FailedPrecondition a format_version that is not known here.
  //   Unavailable        the checkpoint was replaced again and again meanwhile.
  //   Unavailable, PermissionDenied, …  the file system refuses; the message
  //                      names the file. The checkpoint may be intact.
  //
  // Takes files of a store that are in `older` as well, which may be null, from
  // there: they are not brought again, nor verified again.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& directory, const CheckpointReader* older = nullptr);
  // Opens a checkpoint for a shard. Opens its own file alone if this shard of
  // as many has written one; a worker's file may follow the shards' files
  // (hybrid strategy). Opens other files when something is asked for that no
  // open file has. Fails as Open() does; so do the functions below, for these
  // files.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenForShard(
      const std::string& directory, const ShardNumber& shard);
  virtual ~CheckpointReader() = default;

  virtual const durable::CheckpointManifest& manifest() const = 0;

  // Fills `out` with elements [first, first + out.size()) of the variable's
  // array, whatever shards wrote them. Returns the largest number of updates
  // among the entries that it has read.
  //   NotFound  the variable, or some of the elements, do not exist.
  //   DataLoss  the file was altered since Open().
  virtual absl::StatusOr<int64_t> ReadElements(absl::string_view variable,
                                               int array, int64_t first,
                                               absl::Span<float> out) const = 0;

  // Calls `visit` with every row of a sparse table once, in batches, whatever
  // shards wrote them; a shard that restores picks its own rows. Each file
  // gives at least one batch, perhaps without rows, with the table's number of
  // updates in that file.
  //   NotFound   the manifest has no such table.
  //   DataLoss   a file was altered since Open().
  //   any other  the first error that `visit` returns.
  virtual absl::Status ReadRows(absl::string_view table,
                                RowVisit visit) const = 0;
  // Visits rows as ReadRows() does, but in the shard's own file alone if this
  // shard of as many has written one. Otherwise visits other shards' rows, too.
  virtual absl::Status ReadRowsFor(absl::string_view table,
                                   const ShardNumber& shard,
                                   RowVisit visit) const = 0;

  // Visits the counts of a table's ids without a row, in the files that
  // ReadRowsFor() reads.
  virtual absl::Status ReadCountsFor(absl::string_view table,
                                     const ShardNumber& shard,
                                     CountVisit visit) const = 0;

  // Visits the rows that this checkpoint has in files behind the files of the
  // checkpoint with the manifest `older`: what was made or changed since. Calls
  // `removed` with ids that had a row there, or since, and have none now.
  //   NotFound            as ReadRows().
  //   FailedPrecondition  this one does not continue that one
  //                       (FilesInCommon()).
  virtual absl::Status ReadNewerRows(const durable::CheckpointManifest& older,
                                     absl::string_view table, RowVisit visit,
                                     RemovedVisit removed) const = 0;

  // Returns the dedup entries that shard `shard` of `num_shards` wrote, in
  // ascending order of worker incarnation. Empty for a checkpoint with another
  // number of shards.
  virtual absl::StatusOr<std::vector<DedupEntry>> ReadDedup(
      uint32_t shard, uint32_t num_shards) const = 0;

  // Returns the place in the journal of shard `shard` of `num_shards` from
  // which on the checkpoint may lack records; nullopt for a shard without a
  // journal, or with another number of shards.
  virtual absl::StatusOr<std::optional<JournalPlace>> JournalOf(
      uint32_t shard, uint32_t num_shards) const = 0;

  // Returns the places in the journals of all shards that have one, in the
  // order of the manifest's files.
  virtual absl::StatusOr<std::vector<ShardJournal>> Journals() const = 0;

  // Verifies the crc32c of each file that was read as a whole; of others the
  // blocks that were read are verified. Call it when everything is read.
  //   DataLoss  the message names the file.
  virtual absl::Status Verify() const = 0;

  // Number of bytes that were read from the checkpoint's files.
  virtual uint64_t bytes_read() const = 0;

  // Returns a file of a store that is open here; null: this one is not.
  virtual std::shared_ptr<const ShardFile> Opened(
      const durable::CheckpointFile& file) const = 0;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_CHECKPOINT_READER_H_

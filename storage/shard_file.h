#ifndef PARASOL_STORAGE_SHARD_FILE_H_
#define PARASOL_STORAGE_SHARD_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "storage/checked_file.h"
#include "storage/shard_entry.h"
#include "storage/shard_index.h"
#include "storage/shard_key.h"

namespace parasol {

// Checks that the places named by an SST file's footer are inside the file,
// that its blocks have checksums, and the end of its properties. All else in
// the file is compared with checksums; RocksDB would allocate whatever a
// damaged footer says, and ends the process for a damaged end of the
// properties.
//   DataLoss     they are not, or it is no footer.
//   Unavailable  the file system refuses.
absl::Status CheckFooter(CheckedFile& file);

// One shard's file of a checkpoint, kept open. What is read of it is verified,
// block by block. Thread-safe.
class ShardFile {
 public:
  // Opens `file` of the checkpoint in `directory` (ListedPath()), and reads its
  // index: the file's end. Reads a file without an index, as earlier versions
  // wrote it, as a whole. All messages name the file.
  //   DataLoss     missing, of another size, altered, or not a shard file.
  //   Unavailable  the file system refuses.
  static absl::StatusOr<std::unique_ptr<const ShardFile>> Open(
      const std::string& directory, const durable::CheckpointFile& file);
  virtual ~ShardFile() = default;

  virtual const ShardIndex& index() const = 0;
  // Returns the place that ShardWriter::SetJournal() was given.
  virtual const std::optional<JournalPlace>& journal() const = 0;

  // Returns the base of an increment; nullopt for a whole file.
  virtual const std::optional<IncrementBase>& base() const = 0;

  // Fills `out` with elements [first, first + out.size()) of an extent of this
  // file; the extent must contain them.
  //   DataLoss, Unavailable  as for Open().
  virtual absl::Status Read(const ShardIndex::Extent& extent, int64_t first,
                            absl::Span<float> out) const = 0;

  // Calls `visit` with each rows entry of a table of this file.
  //   DataLoss, Unavailable  as for Open().
  //   any other              the first error that `visit` returns.
  virtual absl::Status ReadRows(const ShardIndex::Table& table,
                                RowVisit visit) const = 0;

  // Calls `visit` with each entry of counts, or of removed ids, of the table
  // with these keys of rows. Fails as ReadRows() does.
  virtual absl::Status ReadCounts(const std::string& table_prefix,
                                  CountVisit visit) const = 0;
  virtual absl::Status ReadRemoved(const std::string& table_prefix,
                                   RemovedVisit visit) const = 0;

  // Returns the dedup entries of a shard, in ascending order of workers.
  virtual absl::StatusOr<std::vector<DedupEntry>> ReadDedup(
      const ShardNumber& shard) const = 0;

  // Compares the file's crc32c with the manifest's, if the file was read whole,
  // but for a small rest, which is read now. Does nothing otherwise.
  //   DataLoss, Unavailable  as for Open().
  virtual absl::Status Verify() const = 0;

  // Number of bytes that were read from the file.
  virtual uint64_t bytes_read() const = 0;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_SHARD_FILE_H_

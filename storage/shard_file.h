#ifndef PARASOL_STORAGE_SHARD_FILE_H_
#define PARASOL_STORAGE_SHARD_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "storage/shard_entry.h"
#include "storage/shard_key.h"

namespace parasol {

// One shard's file of a checkpoint, verified and kept open. Thread-safe.
class ShardFile {
 public:
  // An elements entry: elements [key.first, key.first + count).
  struct Extent {
    ElementsKey key;
    int64_t count = 0;
    int64_t updates = 0;
  };
  // Properties that all rows entries of a table share.
  struct Table {
    std::string prefix;   // TablePrefix()
    uint32_t floats = 0;  // floats of a row; 0: no rows here
  };
  struct Dedup {
    DedupKey key;
    std::string window;
  };

  // Opens `directory`/`file.name()`, and reads all its bytes once to verify
  // them. All messages name the file.
  //   DataLoss  missing, truncated, altered, or not a shard file.
  //   Unavailable, …  the file system refuses.
  static absl::StatusOr<std::unique_ptr<const ShardFile>> Open(
      const std::string& directory, const durable::CheckpointFile& file);
  virtual ~ShardFile() = default;

  // Entries of the file, each kind in ascending order of the keys.
  virtual const std::vector<Extent>& extents() const = 0;
  virtual const std::vector<Table>& tables() const = 0;
  virtual const std::vector<Dedup>& dedup() const = 0;

  // Fills `out` with elements [first, first + out.size()) of an extent of this
  // file; the extent must contain them.
  //   DataLoss, Unavailable  as for Open().
  virtual absl::Status Read(const Extent& extent, int64_t first,
                            absl::Span<float> out) const = 0;

  // Calls `visit` with each rows entry of a table of this file.
  //   DataLoss, Unavailable  as for Open().
  //   any other              the first error that `visit` returns.
  virtual absl::Status ReadRows(const Table& table, RowVisit visit) const = 0;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_SHARD_FILE_H_

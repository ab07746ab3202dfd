#ifndef PARASOL_STORAGE_SHARD_CHAIN_H_
#define PARASOL_STORAGE_SHARD_CHAIN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_manifest.h"
#include "storage/shard_entry.h"
#include "storage/shard_file.h"
#include "storage/shard_index.h"

namespace parasol {

// The files of one shard in a checkpoint, kept open: a whole file and the
// increments that follow it. Of what several files have, the newest file's is
// read. Thread-safe.
class ShardChain {
 public:
  // Elements of the shard, and the file that has them.
  struct Piece {
    const ShardIndex::Extent* extent;
    const ShardFile* file;

    int64_t first() const { return extent->key.first; }
    int64_t end() const { return first() + extent->count; }
  };
  // A file of the chain, and its name in the manifest.
  struct File {
    std::string name;
    std::shared_ptr<const ShardFile> file;
  };
  // Opens a file that the manifest lists, or returns one that is open.
  using OpenFile =
      absl::FunctionRef<absl::StatusOr<std::shared_ptr<const ShardFile>>(
          const durable::CheckpointFile& file)>;

  // Opens the chain of the manifest of the checkpoint in `directory`, whose
  // files `open` opens. Fails as `open` does, and with
  //   DataLoss  an increment does not follow the file before it: it was written
  //             for another one, or by another shard, or has elements that the
  //             whole file lacks.
  static absl::StatusOr<std::unique_ptr<const ShardChain>> Open(
      const std::string& directory, const durable::CheckpointManifest& manifest,
      const FileChain& chain, OpenFile open);

  // The whole file, then the increments.
  const std::vector<File>& files() const { return files_; }
  // The shard that wrote the files; nullopt if the whole file does not say.
  const std::optional<ShardNumber>& writer() const {
    return files_[0].file->index().writer;
  }
  // All elements, in the order of the whole file's entries.
  const std::vector<Piece>& pieces() const { return pieces_; }

  // Calls `visit` with each row of the table with these keys once, in batches:
  // the newest file's batches first, perhaps without rows, with the number of
  // updates of the table in that file. Fails as ShardFile::ReadRows() does.
  // Reads the files from number `first_file` of the chain on alone; takes 25 to
  // 50 bytes of memory for each row of those behind it.
  absl::Status ReadRows(const std::string& prefix, RowVisit visit,
                        size_t first_file = 0) const;
  // Does so, and behind each file's rows calls `removed` with the ids whose
  // rows had gone when it was written: those that no newer file has.
  absl::Status ReadRows(const std::string& prefix, RowVisit visit,
                        RemovedVisit removed, size_t first_file) const;

  // Calls `visit` with the counts of the table with these keys of rows: the
  // newest file's.
  absl::Status ReadCounts(const std::string& prefix, CountVisit visit) const {
    return files_.back().file->ReadCounts(prefix, visit);
  }

  // Returns the dedup entries of a shard: the newest file's.
  absl::StatusOr<std::vector<DedupEntry>> ReadDedup(
      const ShardNumber& shard) const {
    return files_.back().file->ReadDedup(shard);
  }
  // Returns the place in the journal: the newest file's.
  const std::optional<JournalPlace>& journal() const {
    return files_.back().file->journal();
  }

  // Does ShardFile::Verify() for each file.
  absl::Status Verify() const;
  // Number of bytes that were read from all files.
  uint64_t bytes_read() const;

 private:
  explicit ShardChain(std::vector<File> files) : files_(std::move(files)) {}
  // Checks that file `i` follows the one before it, which the manifest lists as
  // `before`.
  absl::Status CheckFollows(const std::string& directory, size_t i,
                            const durable::CheckpointFile& before) const;
  // Has the elements of file `i` take the place of older ones.
  absl::Status Overlay(const std::string& directory, size_t i);

  const std::vector<File> files_;
  std::vector<Piece> pieces_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_SHARD_CHAIN_H_

#ifndef PARASOL_STORAGE_CHECKPOINT_STORE_H_
#define PARASOL_STORAGE_CHECKPOINT_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// The checkpoints of one job under one directory: "ckpt-<step, 12 digits>",
// each a directory that never changes once it has that name. Only the chief
// writes here; ps write into the directory that Begin() made; the evaluator
// reads. The format and the commit protocol are storage/FORMAT.md.
//
// Holds nothing but the directory's name: copies are equal, and const methods
// are thread-safe. The writing ones (Begin to Prune) are called by one writer,
// one after the other.
class CheckpointStore {
 public:
  // Makes the directory where it is missing, checks that it can be written and
  // completes a replacement that a crash interrupted.
  //   InvalidArgument  it is no directory.
  //   PermissionDenied, ResourceExhausted, …  it can't be written. Each names
  //                    the directory.
  static absl::StatusOr<CheckpointStore> OpenForWriting(
      const std::string& directory);
  // For readers: the directory need not exist yet.
  explicit CheckpointStore(std::string directory);

  const std::string& directory() const { return directory_; }

  // Steps of the complete checkpoints, ascending. Reads names only. None when
  // the directory is missing.
  absl::StatusOr<std::vector<int64_t>> ListSteps() const;
  std::string PathOf(int64_t step) const;

  // Reads and checks the manifest alone. Errors as CheckpointReader::Open.
  absl::StatusOr<durable::CheckpointManifest> ReadManifest(int64_t step) const;

  // The newest checkpoint that passes CheckpointReader::Open's verification; a
  // damaged one is logged and passed over. nullopt: there is none.
  //   FailedPrecondition, Unavailable, …  a newer one can't be read for a
  //   reason that is no damage: going back behind it would lose steps.
  absl::StatusOr<std::optional<int64_t>> NewestIntact() const;

  // A fresh directory for the shards' files of the checkpoint at `step`.
  absl::StatusOr<std::string> Begin(int64_t step);

  // The commit point: writes the manifest (with its own checksum and
  // format_version), fsyncs, renames `working_directory` to
  // PathOf(manifest.global_step()), fsyncs the parent. An earlier checkpoint of
  // the same step is replaced; a crash at any point leaves one of the two.
  //   InvalidArgument  not a directory that Begin() made, or a file's name
  //                    in the manifest is not plain.
  //   DataLoss         a file of the manifest is not there, or not of its size:
  //                    a ps writes to another file system, perhaps.
  absl::Status Commit(const std::string& working_directory,
                      const durable::CheckpointManifest& manifest);

  // Removes the directory of a checkpoint that failed.
  void Abandon(const std::string& working_directory);

  // Removes the oldest so that at most `max_to_keep` stay (0: keep all), and
  // all working directories: not between Begin() and Commit(). Those after
  // `newest` are damaged ones that a run has gone back behind: they don't
  // count.
  absl::Status Prune(int max_to_keep, int64_t newest = INT64_MAX);

 private:
  std::string directory_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_CHECKPOINT_STORE_H_

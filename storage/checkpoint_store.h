#ifndef PARASOL_STORAGE_CHECKPOINT_STORE_H_
#define PARASOL_STORAGE_CHECKPOINT_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// The checkpoints of one job under one directory. Each checkpoint is a
// directory "ckpt-<step, 12 digits>" that never changes once it has that name.
// Only the chief, or a worker without a cluster, uses the writing functions; ps
// write into the directory that Begin() made; the evaluator reads.
// storage/FORMAT.md describes the format and the commit protocol.
//
// The directory may be a URI of a store (storage/remote). Nothing is renamed
// there: files are written under their last names, each attempt's under names
// of its own, and a checkpoint is there when its manifest is, which is written
// last.
//
// Holds nothing but the directory's name: copies are equal, and const methods
// are thread-safe. The writing functions (Begin() to Prune()) must be called by
// one writer, one after the other.
class CheckpointStore {
 public:
  // Creates the directory if it is missing, checks that it can be written,
  // completes a replacement that a crash interrupted, and removes working
  // directories: a writer before this one can't commit them any more. All
  // messages name the directory.
  //   InvalidArgument  the path is not a directory.
  //   PermissionDenied, ResourceExhausted, …  it can't be written.
  //   any other        an error of `may_remove`, which is asked before files
  //                    are removed from a store.
  static absl::StatusOr<CheckpointStore> OpenForWriting(
      const std::string& directory,
      absl::FunctionRef<absl::Status()> may_remove = MayAlways);
  // Creates a store for reading; the directory need not exist yet.
  explicit CheckpointStore(std::string directory);

  // Returns true if Begin() makes directories with names like `name`.
  static bool IsWorkingName(absl::string_view name);

  // Returns where the file `name` of a checkpoint is written while it has the
  // directory that Begin() made: there, or in a store where it stays.
  static std::string PathInWorking(const std::string& working_directory,
                                   absl::string_view name);
  // Returns the name for the file of a checkpoint that is being made, which
  // differs from names of other attempts where they lie beside each other.
  // `name` ends with ".sst".
  static std::string NameInWorking(const std::string& working_directory,
                                   const std::string& name);
  // Returns Begin()'s directory for a checkpoint whose step became known later;
  // call it before files are written, and use it from then on.
  static std::string WorkingAt(const std::string& working_directory,
                               int64_t step);

  const std::string& directory() const { return directory_; }

  // Returns the steps of the complete checkpoints in ascending order; none if
  // the directory is missing. Reads names only.
  absl::StatusOr<std::vector<int64_t>> ListSteps() const;
  std::string PathOf(int64_t step) const;

  // Reads and checks the manifest alone. Errors as for
  // CheckpointReader::Open().
  absl::StatusOr<durable::CheckpointManifest> ReadManifest(int64_t step) const;

  // Checks the manifest, and that its files are there with their sizes. Does
  // not read the files. Errors as for CheckpointReader::Open().
  absl::Status CheckComplete(int64_t step) const;

  // Reads all files of the checkpoint once, and compares their checksums with
  // the manifest's. Asks `cancelled` before each file. Errors as for
  // CheckpointReader::Open(), and
  //   Cancelled  `cancelled` returned true.
  absl::Status Verify(
      int64_t step,
      const std::function<bool()>& cancelled = [] { return false; }) const;

  // Returns the step of the newest checkpoint that CheckComplete() accepts, or
  // nullopt if there is none. Passes over the steps `damaged`, whose files were
  // found damaged. Logs and skips damaged checkpoints.
  //   FailedPrecondition, Unavailable, …  a newer checkpoint can't be read,
  //   but it is not damaged: an older one would lose steps.
  absl::StatusOr<std::optional<int64_t>> NewestComplete(
      const std::set<int64_t>& damaged = {}) const;

  // Makes a fresh directory for the shards' files of the checkpoint at `step`,
  // and returns its path. Makes the store's directory again, with a warning, if
  // it was removed.
  absl::StatusOr<std::string> Begin(int64_t step);

  // Commits a checkpoint: writes the manifest with its own checksum and
  // format_version, fsyncs it, renames `working_directory` to
  // PathOf(manifest.global_step()), and fsyncs the parent. Replaces an earlier
  // checkpoint of the same step; a crash at any point leaves one of the two.
  // After an error both may be there, the earlier one under another name.
  //   InvalidArgument  `working_directory` is not one that Begin() made, or the
  //                    name of a file in the manifest is not plain.
  //   DataLoss         a file of the manifest is missing or has another size;
  //                    perhaps a ps writes to another file system.
  //   any other        an error of `may_write`, which is asked before each
  //                    attempt to write a manifest to a store.
  absl::Status Commit(const std::string& working_directory,
                      const durable::CheckpointManifest& manifest,
                      absl::FunctionRef<absl::Status()> may_write = MayAlways);

  // Removes the working directory of a checkpoint that failed, if it is still
  // there. Removes no checkpoint, also after a Commit() that failed.
  // Asks `may_remove` before files are removed from a store: after its error
  // they stay, for the directory's next owner.
  void Abandon(const std::string& working_directory,
               absl::FunctionRef<absl::Status()> may_remove = MayAlways);

  // Removes the oldest checkpoints so that at most `max_to_keep` stay (0: all
  // stay), and removes all working directories. Keeps the checkpoints of the
  // steps `spared` besides, and each file that the manifest of one that stays
  // lists. Checkpoints after step `newest` do not count: they
  // are damaged, and the run has gone back to an earlier one. Nor does a
  // directory count that has a checkpoint's name and is none; it goes once it
  // is older than the checkpoints that stay. Must not be called between Begin()
  // and Commit(). Asks `may_remove` before files are removed from a store,
  // whose error ends it.
  absl::Status Prune(int max_to_keep, int64_t newest = INT64_MAX,
                     absl::Span<const int64_t> spared = {},
                     absl::FunctionRef<absl::Status()> may_remove = MayAlways);

 private:
  static absl::Status MayAlways() { return absl::OkStatus(); }
  // Returns the steps whose files the manifests of `steps` without `old` list.
  // A directory of a store that was copied to a disk has such.
  absl::StatusOr<std::set<int64_t>> Continued(
      absl::Span<const int64_t> steps, absl::Span<const int64_t> old) const;

  std::string directory_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_CHECKPOINT_STORE_H_

#ifndef PARASOL_STORAGE_REMOTE_CHECKPOINTS_H_
#define PARASOL_STORAGE_REMOTE_CHECKPOINTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"

// Parts of CheckpointStore for directories of stores, whose names are URIs;
// storage/FORMAT.md describes them. All fail as RemoteFiles does, too.
namespace parasol {

// Returns the steps that have a manifest, ascending.
absl::StatusOr<std::vector<int64_t>> RemoteSteps(const std::string& directory);

// Checks that the files that the manifest of a checkpoint lists are there with
// their sizes, in its folder and in others.
//   DataLoss  one is missing or has another size.
absl::Status CheckRemoteCheckpoint(const std::string& checkpoint,
                                   const durable::CheckpointManifest& manifest);

// Reads a file that the checkpoint `path` lists, without a copy.
//   DataLoss  its size or crc32c is not the manifest's.
absl::Status VerifyRemoteFile(const std::string& path,
                              const durable::CheckpointFile& file);

// The folders of checkpoints in a directory of a store, as a look has found
// them: their files, and what their manifests list. A file is of use as long as
// any manifest lists it, its own folder's or another one's.
class StoredCheckpoints {
 public:
  struct Folder {
    // Names of the files, ascending, without the manifest and without names
    // that are not plain: these are none of ours, and would be read as options
    // or as another path.
    std::vector<std::string> files = {};
    // The manifest, or why it says nothing (DataLoss, FailedPrecondition);
    // nullopt: there is none.
    std::optional<absl::StatusOr<durable::CheckpointManifest>> manifest = {};
  };
  using Folders = std::map<int64_t, Folder>;  // key: the step

  // Lists the directory, then reads the manifests: what is listed was there
  // before they were. Reads one that is damaged twice.
  static absl::StatusOr<StoredCheckpoints> Look(const std::string& directory);
  StoredCheckpoints(std::string directory, Folders folders)
      : directory_(std::move(directory)), folders_(std::move(folders)) {}

  // Returns the steps that have a manifest, ascending.
  std::vector<int64_t> Steps() const;
  // Returns true if the manifest of a step is damaged.
  bool IsDamaged(int64_t step) const;

  // Returns the paths of the files that no manifest lists. Files in a
  // folder whose manifest is damaged stay: somebody may want to know why. So do
  // all up to a manifest that a newer program has written, which may list any.
  std::vector<std::string> Unlisted() const;

  // Removes the checkpoints of these steps: all manifests first, so that nobody
  // finds one in part, then the files that no other manifest lists. Asks
  // `may_remove` before each, whose error ends it.
  absl::Status Remove(absl::Span<const int64_t> steps,
                      absl::FunctionRef<absl::Status()> may_remove);

 private:
  std::string directory_;
  Folders folders_;
};

// Removes what no manifest of the directory lists: the files of attempts that
// failed, and of checkpoints that were removed or replaced. Nobody may be
// writing a checkpoint; `may_remove` says so, and is asked between the look for
// such files and their removal, so a next owner's are not among them.
absl::Status RemoveUnlisted(const StoredCheckpoints& stored,
                            absl::FunctionRef<absl::Status()> may_remove);

// Removes the files of an attempt that failed, unless a manifest lists them.
// Asks `may_remove` as RemoveUnlisted() does.
absl::Status RemoveRemoteAttempt(const std::string& working_directory,
                                 absl::FunctionRef<absl::Status()> may_remove);

}  // namespace parasol

#endif  // PARASOL_STORAGE_REMOTE_CHECKPOINTS_H_

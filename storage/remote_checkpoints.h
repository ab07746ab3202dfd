#ifndef PARASOL_STORAGE_REMOTE_CHECKPOINTS_H_
#define PARASOL_STORAGE_REMOTE_CHECKPOINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"

// Parts of CheckpointStore for directories of stores, whose names are URIs;
// storage/FORMAT.md describes them. All fail as RemoteFiles does, too.
namespace parasol {

// Returns the steps that have a manifest, ascending.
absl::StatusOr<std::vector<int64_t>> RemoteSteps(const std::string& directory);

// Checks that a checkpoint's files are in its folder, `path`, with their sizes.
//   DataLoss  one is missing or has another size.
absl::Status CheckRemoteCheckpoint(const std::string& path,
                                   const durable::CheckpointManifest& manifest);

// Reads a file of the checkpoint `path`, without a copy.
//   DataLoss  its size or crc32c is not the manifest's.
absl::Status VerifyRemoteFile(const std::string& path,
                              const durable::CheckpointFile& file);

// Removes a checkpoint: its manifest first, so nobody finds it in part. Asks
// `may_remove` before, whose error ends it.
absl::Status RemoveRemoteCheckpoint(
    const std::string& path, absl::FunctionRef<absl::Status()> may_remove);

// Removes what is in checkpoints' folders and no manifest lists: the files of
// attempts that failed, and of checkpoints that were replaced. Nobody may be
// writing a checkpoint; `may_remove` says so, and is asked between the look for
// such files and their removal, so a next owner's are not among them.
absl::Status RemoveRemoteRest(const std::string& directory,
                              absl::FunctionRef<absl::Status()> may_remove);

// Removes the files of an attempt that failed, unless a manifest lists them.
absl::Status RemoveRemoteAttempt(const std::string& working_directory);

}  // namespace parasol

#endif  // PARASOL_STORAGE_REMOTE_CHECKPOINTS_H_

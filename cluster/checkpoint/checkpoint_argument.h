#ifndef PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_ARGUMENT_H_
#define PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_ARGUMENT_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

// Returns the directory of the checkpoint that a user means with `path`: a
// checkpoint's own; a directory of many, which means the newest complete one;
// or such a directory with "/BEST" behind it, which means the one that its file
// BEST names. All of these may be URIs of an object store: the checkpoint is
// brought to this machine.
//   NotFound  there is no such directory, or no checkpoint in it, or no BEST.
//   DataLoss  all checkpoints in it are damaged, or BEST is.
//   InvalidArgument, Unavailable  the path can't be read as a directory; as for
//             ObjectCache::BringNamed().
absl::StatusOr<std::string> CheckpointAt(const std::string& path);

// Returns the directory of checkpoints whose BEST `path` means, "DIR/BEST";
// nullopt if it means something else.
std::optional<std::string> DirectoryOfBest(const std::string& path);

// Opens the checkpoint at CheckpointAt(path). Fails as CheckpointAt() and
// CheckpointReader::Open() do.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpointAt(
    const std::string& path);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_ARGUMENT_H_

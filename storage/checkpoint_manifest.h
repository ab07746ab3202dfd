#ifndef PARASOL_STORAGE_CHECKPOINT_MANIFEST_H_
#define PARASOL_STORAGE_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/checkpoint.pb.h"

// The MANIFEST file of a checkpoint; storage/FORMAT.md describes it.
namespace parasol {

inline constexpr absl::string_view kManifestName = "MANIFEST";

// The newest and the oldest format version that can be read.
inline constexpr uint32_t kFormatVersion = 5;
inline constexpr uint32_t kOldestFormatVersion = 1;

// Returns the format version that a manifest is written with: 5 if it lists
// files of other checkpoints' directories, or a table's slots are narrower than
// its rows, 4 if its job has tables with bounds, 3 if it has increments, and
// otherwise 2, which older programs read, too.
uint32_t FormatVersionFor(const durable::CheckpointManifest& manifest);

// Returns the number of elements that slot `slot` of a table has for each row,
// and the number of elements of a row: its values and all slots.
uint32_t SlotWidthOf(const durable::CheckpointTable& table, int slot);
uint64_t FloatsOfRow(const durable::CheckpointTable& table);

// The files of one shard: a whole one, and the increments that follow it, by
// their positions in the manifest.
struct FileChain {
  int first = 0;
  int count = 1;

  bool operator==(const FileChain&) const = default;
};

// Returns the chains of a manifest that CheckFileNames() accepts, in the order
// of the shards.
std::vector<FileChain> ChainsOf(const durable::CheckpointManifest& manifest);

// Returns true if both are one file, whichever directory either manifest has
// its name with: name, size and checksum are equal.
bool IsSameFile(const durable::CheckpointFile& a,
                const durable::CheckpointFile& b);

// Returns true if the manifest lists files of other checkpoints' directories.
bool ListsOtherDirectories(const durable::CheckpointManifest& manifest);

// Returns, for each chain of `newer`, how many of its files `older` has.
// nullopt unless both are of one run, and each chain of `newer` begins with the
// whole chain of `older` of the shard.
std::optional<std::vector<int>> FilesInCommon(
    const durable::CheckpointManifest& older,
    const durable::CheckpointManifest& newer);

// Checks the names of the manifest's files, and their order.
//   InvalidArgument  a name is neither plain nor a file's in a checkpoint of a
//                    smaller step, or two files have one name, or an increment
//                    does not follow the one before it.
absl::Status CheckFileNames(const durable::CheckpointManifest& manifest);

std::string EncodeManifest(const durable::CheckpointManifest& manifest);

// Decodes a manifest that EncodeManifest() has written.
//   DataLoss            not what EncodeManifest() gives.
//   FailedPrecondition  a format_version that is not known here.
absl::StatusOr<durable::CheckpointManifest> DecodeManifest(
    absl::string_view bytes);

// Returns the bytes of the manifest in a checkpoint's directory, unchecked.
// Errors as for ReadFile().
absl::StatusOr<std::string> ReadManifestBytes(const std::string& directory);

// Decodes the manifest of the checkpoint in `directory`; messages name the
// directory. Fails as DecodeManifest() does, or with
//   DataLoss  the directory has the name of another step's checkpoint.
absl::StatusOr<durable::CheckpointManifest> DecodeManifestIn(
    const std::string& directory, absl::string_view bytes);

}  // namespace parasol

#endif  // PARASOL_STORAGE_CHECKPOINT_MANIFEST_H_

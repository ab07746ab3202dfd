#ifndef PARASOL_STORAGE_CHECKPOINT_MANIFEST_H_
#define PARASOL_STORAGE_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/checkpoint.pb.h"

// The MANIFEST file of a checkpoint; storage/FORMAT.md describes it.
namespace parasol {

inline constexpr absl::string_view kManifestName = "MANIFEST";

// The format version that is written, and the oldest one that can be read.
inline constexpr uint32_t kFormatVersion = 2;
inline constexpr uint32_t kOldestFormatVersion = 1;

// Checks the names of the manifest's files.
//   InvalidArgument  a name is not plain, or two names are equal.
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

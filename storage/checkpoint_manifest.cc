#include "storage/checkpoint_manifest.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/checked_message.h"
#include "storage/checkpoint_name.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr absl::string_view kManifestMagic = "PARASOLM";

}  // namespace

absl::Status CheckFileNames(const durable::CheckpointManifest& manifest) {
  std::set<std::string> names;
  for (const durable::CheckpointFile& file : manifest.file()) {
    if (!IsPlainName(file.name()) || file.name() == kManifestName) {
      return absl::InvalidArgumentError(absl::StrCat(
          "manifest: '", file.name(), "' is not a plain file name"));
    }
    if (!names.insert(file.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("manifest: lists '", file.name(), "' twice"));
    }
  }
  return absl::OkStatus();
}

std::string EncodeManifest(const durable::CheckpointManifest& manifest) {
  return EncodeChecked(kManifestMagic, manifest.SerializeAsString());
}

absl::StatusOr<durable::CheckpointManifest> DecodeManifest(
    absl::string_view bytes) {
  ASSIGN_OR_RETURN(const absl::string_view payload,
                   DecodeChecked(kManifestMagic, bytes));
  durable::CheckpointManifest manifest;
  if (!manifest.ParseFromArray(payload.data(), payload.size())) {
    return absl::DataLossError("its message can't be parsed");
  }
  if (manifest.format_version() < kOldestFormatVersion ||
      manifest.format_version() > kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "its format_version is ", manifest.format_version(),
        "; this program knows ", kOldestFormatVersion, " to ", kFormatVersion));
  }
  if (const absl::Status names = CheckFileNames(manifest); !names.ok()) {
    return absl::DataLossError(names.message());
  }
  return manifest;
}

absl::StatusOr<std::string> ReadManifestBytes(const std::string& directory) {
  return ReadFile(absl::StrCat(directory, "/", kManifestName),
                  kMaxCheckedBytes);
}

absl::StatusOr<durable::CheckpointManifest> DecodeManifestIn(
    const std::string& directory, absl::string_view bytes) {
  ASSIGN_OR_RETURN(durable::CheckpointManifest manifest, DecodeManifest(bytes),
                   _ << directory << "/" << kManifestName);
  RETURN_IF_ERROR(CheckStepOfName(directory, manifest.global_step()));
  return manifest;
}

}  // namespace parasol

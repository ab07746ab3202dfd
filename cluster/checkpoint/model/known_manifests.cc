#include "cluster/checkpoint/model/known_manifests.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "storage/checkpoint_manifest.h"
#include "storage/remote/remote_files.h"

namespace parasol {

absl::StatusOr<durable::CheckpointManifest> KnownManifests::Read(int64_t step) {
  if (!IsUri(store_.directory())) return store_.ReadManifest(step);
  const std::string path = JoinedPath(store_.PathOf(step), kManifestName);
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
  ASSIGN_OR_RETURN(const RemoteFiles::About about, files->Look(path));
  const auto known = known_.find(step);
  if (known != known_.end() && known->second.version == about.version) {
    return known->second.manifest;
  }
  absl::StatusOr<durable::CheckpointManifest> manifest =
      store_.ReadManifest(step);
  if (manifest.ok() || absl::IsDataLoss(manifest.status())) {
    // One that was written after the look has another version at the next.
    known_.insert_or_assign(
        step, Known{.version = about.version, .manifest = manifest});
  }
  return manifest;
}

absl::StatusOr<durable::CheckpointManifest> KnownManifests::Recall(
    int64_t step) {
  const auto known = known_.find(step);
  return known == known_.end() ? Read(step) : known->second.manifest;
}

void KnownManifests::KeepAlone(absl::Span<const int64_t> steps) {
  std::erase_if(known_, [steps](const auto& known) {
    return !std::binary_search(steps.begin(), steps.end(), known.first);
  });
}

}  // namespace parasol

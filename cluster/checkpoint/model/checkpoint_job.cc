#include "cluster/checkpoint/model/checkpoint_job.h"

#include <memory>

#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_reader.h"

namespace parasol {
namespace {

// Opening a checkpoint compares its files with the manifest. Of one in a store
// it would bring them here, which whoever loads it does.
absl::StatusOr<durable::CheckpointManifest> CheckedManifest(
    const std::string& directory) {
  if (IsUri(directory)) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadManifestBytes(directory));
    return DecodeManifestIn(directory, bytes);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   CheckpointReader::Open(directory));
  return checkpoint->manifest();
}

}  // namespace

absl::StatusOr<LoadedJob> JobOfCheckpoint(
    const std::string& directory, absl::Span<const std::string> overrides) {
  ASSIGN_OR_RETURN(const durable::CheckpointManifest manifest,
                   CheckedManifest(directory));
  ASSIGN_OR_RETURN(LoadedJob job, LoadJob(manifest.job(), overrides),
                   _ << directory);
  return job;
}

}  // namespace parasol

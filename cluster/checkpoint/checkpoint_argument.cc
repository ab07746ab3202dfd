#include "cluster/checkpoint/checkpoint_argument.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "cluster/checkpoint/resume.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"

namespace parasol {
std::optional<std::string> DirectoryOfBest(const std::string& path) {
  absl::string_view directory = path;
  while (absl::EndsWith(directory, "/")) directory.remove_suffix(1);
  if (!absl::ConsumeSuffix(&directory, kBestName)) return std::nullopt;
  // A directory may be called so, too.
  if (IsDirectory(path)) return std::nullopt;
  if (directory.empty()) return ".";
  if (directory == "/") return "/";
  if (!absl::ConsumeSuffix(&directory, "/")) return std::nullopt;
  while (absl::EndsWith(directory, "/")) directory.remove_suffix(1);
  return directory.empty() ? "/" : std::string(directory);
}

absl::StatusOr<std::string> CheckpointAt(const std::string& path) {
  if (const std::optional<std::string> directory = DirectoryOfBest(path)) {
    ASSIGN_OR_RETURN(const BestCheckpoint best, ReadBest(*directory));
    return best.path;
  }
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(path);
  if (absl::IsNotFound(names.status())) {
    return absl::NotFoundError(absl::StrCat(
        path, ": has no checkpoint, for there is no such directory"));
  }
  RETURN_IF_ERROR(names.status());
  if (std::find(names->begin(), names->end(), kManifestName) != names->end()) {
    return std::string(absl::StripSuffix(path, "/"));
  }
  const CheckpointStore store(path);
  ASSIGN_OR_RETURN(const std::optional<durable::CheckpointManifest> newest,
                   FindCheckpoint(store));
  if (newest) return store.PathOf(newest->global_step());
  return absl::NotFoundError(
      absl::StrCat(path,
                   ": has no checkpoint; name a directory ckpt-… or one "
                   "that has some"));
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpointAt(
    const std::string& path) {
  ASSIGN_OR_RETURN(const std::string directory, CheckpointAt(path));
  return CheckpointReader::Open(directory);
}

}  // namespace parasol

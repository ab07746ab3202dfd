#include "cluster/checkpoint/checkpoint_argument.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "cluster/checkpoint/resume.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/object/object_store.h"
#include "ml/input/object/object_uri.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"
#include "storage/remote_checkpoints.h"

namespace parasol {
namespace {

// How often a checkpoint may be replaced while it is brought here.
constexpr int kMostAttempts = 5;

// Returns the newest complete checkpoint of a directory of many.
absl::StatusOr<std::string> NewestIn(const CheckpointStore& store) {
  ASSIGN_OR_RETURN(const std::optional<durable::CheckpointManifest> newest,
                   FindCheckpoint(store));
  if (newest) return store.PathOf(newest->global_step());
  return absl::NotFoundError(
      absl::StrCat(store.directory(),
                   ": has no checkpoint; name a directory ckpt-… or one "
                   "that has some"));
}

// Brings the files that a checkpoint lists, from other ones' folders, too.
absl::StatusOr<std::string> BringCheckpoint(const std::string& named) {
  // Without a '/' behind its name.
  const std::string uri = ParentPath(JoinedPath(named, kManifestName));
  ObjectCache& cache = ObjectCache::OfProcess();
  const std::string own = LastName(uri);
  for (int attempt = 1; attempt <= kMostAttempts; ++attempt) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadManifestBytes(uri));
    ASSIGN_OR_RETURN(const durable::CheckpointManifest manifest,
                     DecodeManifestIn(uri, bytes));
    if (!ListsOtherDirectories(manifest)) return cache.BringNamed(uri);
    // What is not there may have gone with a manifest that was replaced.
    const auto is_replaced = [&uri, &bytes](const absl::Status& fault) {
      if (!absl::IsDataLoss(fault) && !absl::IsNotFound(fault)) return false;
      const absl::StatusOr<std::string> now = ReadManifestBytes(uri);
      return now.ok() && *now != bytes;
    };
    const absl::Status whole = CheckRemoteCheckpoint(uri, manifest);
    if (is_replaced(whole)) continue;
    RETURN_IF_ERROR(whole);
    std::vector<std::string> names = {absl::StrCat(own, "/", kManifestName)};
    for (const durable::CheckpointFile& file : manifest.file()) {
      const bool is_own = ParseListedName(file.name())->step == std::nullopt;
      names.push_back(is_own ? absl::StrCat(own, "/", file.name())
                             : file.name());
    }
    const absl::StatusOr<std::string> folder =
        cache.BringNamed(ParentPath(uri), names);
    if (is_replaced(folder.status())) continue;
    RETURN_IF_ERROR(folder.status());
    const std::string brought = absl::StrCat(*folder, "/", own);
    ASSIGN_OR_RETURN(const std::string now, ReadManifestBytes(brought));
    if (now == bytes) return brought;
  }
  return absl::UnavailableError(
      absl::StrCat(uri, ": was replaced ", kMostAttempts,
                   " times while it was brought; try again"));
}

absl::StatusOr<std::string> CheckpointInStore(const std::string& uri) {
  ASSIGN_OR_RETURN(const ObjectUri parts, ParseObjectUri(uri));
  if (LastName(uri) == kBestName) {
    ASSIGN_OR_RETURN(const BestCheckpoint best, ReadBest(ParentPath(uri)));
    return BringCheckpoint(best.path);
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const ObjectStore> store,
                   ObjectStore::Open(parts));
  ASSIGN_OR_RETURN(const std::vector<ObjectEntry> entries,
                   store->List(parts.path, ObjectStore::Depth::kFiles));
  for (const ObjectEntry& entry : entries) {
    if (entry.path == absl::StrCat(parts.path, "/", kManifestName)) {
      return BringCheckpoint(uri);
    }
  }
  // What was not uploaded to its end is not brought.
  ASSIGN_OR_RETURN(const std::string newest, NewestIn(CheckpointStore(uri)));
  return BringCheckpoint(newest);
}

}  // namespace

std::optional<std::string> DirectoryOfBest(const std::string& path) {
  if (IsUri(path)) {
    if (LastName(path) != kBestName) return std::nullopt;
    return ParentPath(path);
  }
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
  if (IsUri(path)) return CheckpointInStore(path);
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
  return NewestIn(CheckpointStore(path));
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpointAt(
    const std::string& path) {
  ASSIGN_OR_RETURN(const std::string directory, CheckpointAt(path));
  return CheckpointReader::Open(directory);
}

}  // namespace parasol

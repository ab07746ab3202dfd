#include "storage/remote_checkpoints.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "storage/checked_file.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"
#include "storage/remote/remote_directory.h"
#include "storage/remote/remote_files.h"

namespace parasol {
namespace {

// Reads the manifest of a checkpoint; nullopt: it was removed meanwhile. One
// that is damaged is read again: what it lists is removed if it says nothing.
absl::StatusOr<std::optional<absl::StatusOr<durable::CheckpointManifest>>>
ManifestAt(const std::string& path) {
  std::optional<absl::StatusOr<durable::CheckpointManifest>> manifest;
  for (int look = 0; look < 2; ++look) {
    const absl::StatusOr<std::string> bytes = ReadManifestBytes(path);
    if (absl::IsNotFound(bytes.status())) return std::nullopt;
    RETURN_IF_ERROR(bytes.status());
    manifest = DecodeManifestIn(path, *bytes);
    if (!absl::IsDataLoss(manifest->status())) break;
  }
  return manifest;
}

absl::Status RemoveAll(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
    RETURN_IF_ERROR(files->Remove(path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> RemoteSteps(const std::string& directory) {
  ASSIGN_OR_RETURN(const RemoteListing listing, ListRemote(directory));
  std::vector<int64_t> steps;
  for (const auto& [folder, files] : listing) {
    const std::optional<int64_t> step = StepOfName(folder);
    if (step.has_value() && files.contains(std::string(kManifestName))) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

absl::Status CheckRemoteCheckpoint(
    const std::string& checkpoint,
    const durable::CheckpointManifest& manifest) {
  // Without a '/' behind its name.
  const std::string path = ParentPath(JoinedPath(checkpoint, kManifestName));
  // One list for all: of the folder, or of all of them.
  const bool has_others = ListsOtherDirectories(manifest);
  ASSIGN_OR_RETURN(const RemoteListing listing,
                   ListRemote(has_others ? ParentPath(path) : path));
  for (const durable::CheckpointFile& file : manifest.file()) {
    const std::string of_file = ListedPath(path, file.name());
    const std::optional<ListedName> name = ParseListedName(file.name());
    if (!name.has_value()) return absl::DataLossError(of_file);
    const auto folder = listing.find(name->step.has_value()
                                         ? CheckpointName(*name->step)
                                         : (has_others ? LastName(path) : ""));
    const auto found = folder == listing.end()
                           ? decltype(folder->second.end())()
                           : folder->second.find(std::string(name->file));
    if (folder == listing.end() || found == folder->second.end()) {
      return absl::DataLossError(absl::StrCat(
          of_file, name->step.has_value()
                       ? ": is missing, which an increment continues"
                       : ": is missing; do ps and chief write to one store?"));
    }
    if (found->second != file.bytes()) {
      return absl::DataLossError(absl::StrCat(of_file, ": has ", found->second,
                                              " bytes, should have ",
                                              file.bytes()));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyRemoteFile(const std::string& path,
                              const durable::CheckpointFile& file) {
  const std::string of_file = ListedPath(path, file.name());
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
  absl::Mutex mu;
  // Size and crc32c of each piece, by its first byte.
  std::map<uint64_t, std::pair<uint64_t, uint32_t>> pieces;
  RETURN_IF_ERROR(files->ReadPieces(
      of_file, file.bytes(), [&](uint64_t offset, absl::string_view piece) {
        if (piece.empty()) return absl::OkStatus();
        const uint32_t crc = Crc32cOf(piece);
        const absl::MutexLock lock(&mu);
        pieces[offset] = {piece.size(), crc};
        return absl::OkStatus();
      }));
  uint32_t crc = 0;
  for (const auto& [offset, piece] : pieces) {
    crc = ConcatCrc32c(crc, piece.second, piece.first);
  }
  if (crc == file.crc32c()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(of_file, ": its crc32c is not the manifest's"));
}

absl::StatusOr<StoredCheckpoints> StoredCheckpoints::Look(
    const std::string& directory) {
  ASSIGN_OR_RETURN(const RemoteListing listing, ListRemote(directory));
  Folders folders;
  for (const auto& [name, in_folder] : listing) {
    const std::optional<int64_t> step = StepOfName(name);
    if (!step.has_value()) continue;
    Folder& folder = folders[*step];
    for (const auto& [file, bytes] : in_folder) {
      if (file == kManifestName) {
        ASSIGN_OR_RETURN(folder.manifest,
                         ManifestAt(JoinedPath(directory, name)));
      } else if (IsPlainName(file)) {
        folder.files.push_back(file);
      }
    }
  }
  return StoredCheckpoints(directory, std::move(folders));
}

std::vector<int64_t> StoredCheckpoints::Steps() const {
  std::vector<int64_t> steps;
  for (const auto& [step, folder] : folders_) {
    if (folder.manifest.has_value()) steps.push_back(step);
  }
  return steps;
}

bool StoredCheckpoints::IsDamaged(int64_t step) const {
  const auto folder = folders_.find(step);
  return folder != folders_.end() && folder->second.manifest.has_value() &&
         absl::IsDataLoss(folder->second.manifest->status());
}

std::vector<std::string> StoredCheckpoints::Unlisted() const {
  std::set<std::pair<int64_t, std::string>> listed;
  int64_t all_up_to = -1;
  for (const auto& [step, folder] : folders_) {
    if (!folder.manifest.has_value()) continue;
    if (!folder.manifest->ok()) {
      if (!absl::IsDataLoss(folder.manifest->status())) all_up_to = step;
      continue;
    }
    for (const durable::CheckpointFile& file : (*folder.manifest)->file()) {
      const std::optional<ListedName> name = ParseListedName(file.name());
      if (!name.has_value()) continue;
      listed.emplace(name->step.value_or(step), std::string(name->file));
    }
  }
  std::vector<std::string> unlisted;
  for (const auto& [step, folder] : folders_) {
    if (step <= all_up_to || IsDamaged(step)) continue;
    const std::string path = JoinedPath(directory_, CheckpointName(step));
    for (const std::string& file : folder.files) {
      if (listed.contains({step, file})) continue;
      unlisted.push_back(JoinedPath(path, file));
    }
  }
  return unlisted;
}

absl::Status StoredCheckpoints::Remove(
    absl::Span<const int64_t> steps,
    absl::FunctionRef<absl::Status()> may_remove) {
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(directory_));
  for (const int64_t step : steps) {
    const std::string path = JoinedPath(directory_, CheckpointName(step));
    RETURN_IF_ERROR(may_remove());
    RETURN_IF_ERROR(files->Remove(JoinedPath(path, kManifestName)));
    folders_[step].manifest.reset();
  }
  const std::vector<std::string> unlisted = Unlisted();
  std::map<std::string, size_t> of_folder;  // number of the files to go
  for (const std::string& path : unlisted) ++of_folder[ParentPath(path)];
  for (const int64_t step : steps) {
    const std::string path = JoinedPath(directory_, CheckpointName(step));
    // Nobody needs any of them: they go together.
    if (of_folder[path] != folders_[step].files.size()) continue;
    // Tries that failed took their time.
    RETURN_IF_ERROR(may_remove());
    RETURN_IF_ERROR(files->RemoveFolder(path));
    folders_.erase(step);
  }
  return RemoveUnlisted(*this, may_remove);
}

absl::Status RemoveUnlisted(const StoredCheckpoints& stored,
                            absl::FunctionRef<absl::Status()> may_remove) {
  const std::vector<std::string> rest = stored.Unlisted();
  if (rest.empty()) return absl::OkStatus();
  // What was listed before is no next owner's.
  RETURN_IF_ERROR(may_remove());
  return RemoveAll(rest);
}

absl::Status RemoveRemoteAttempt(const std::string& working_directory,
                                 absl::FunctionRef<absl::Status()> may_remove) {
  const std::string working = LastName(working_directory);
  const std::string attempt =
      absl::StrCat(working.substr(working.rfind('-')), ".sst");
  ASSIGN_OR_RETURN(const StoredCheckpoints stored,
                   StoredCheckpoints::Look(ParentPath(working_directory)));
  std::vector<std::string> files = stored.Unlisted();
  std::erase_if(files, [&attempt](const std::string& path) {
    return !absl::EndsWith(LastName(path), attempt);
  });
  if (files.empty()) return absl::OkStatus();
  // A next owner may have gone on from the checkpoint, if it is one after all.
  RETURN_IF_ERROR(may_remove());
  return RemoveAll(files);
}

}  // namespace parasol

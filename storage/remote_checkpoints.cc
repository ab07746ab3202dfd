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

// Returns the names of a checkpoint's files; nullopt of one whose manifest says
// nothing, which is left as it is: somebody may want to know why.
absl::StatusOr<std::optional<std::set<std::string>>> ListedFiles(
    const std::string& path) {
  const absl::StatusOr<std::string> bytes = ReadManifestBytes(path);
  std::set<std::string> names;
  if (absl::IsNotFound(bytes.status())) return names;
  RETURN_IF_ERROR(bytes.status());
  const auto manifest = DecodeManifestIn(path, *bytes);
  if (!manifest.ok()) return std::nullopt;
  names.emplace(kManifestName);
  for (const durable::CheckpointFile& file : manifest->file()) {
    names.insert(file.name());
  }
  return names;
}

// Returns the paths of the files in checkpoints' folders that no manifest lists
// and that `is_meant` names. A name that is not plain is none of ours, and
// would be read as options or as another path.
absl::StatusOr<std::vector<std::string>> Unlisted(
    const std::string& directory,
    absl::FunctionRef<bool(const std::string& name)> is_meant) {
  ASSIGN_OR_RETURN(const RemoteListing listing, ListRemote(directory));
  std::vector<std::string> found;
  for (const auto& [folder, in_folder] : listing) {
    if (!StepOfName(folder).has_value()) continue;
    std::vector<std::string> meant;
    for (const auto& [name, bytes] : in_folder) {
      if (name != kManifestName && IsPlainName(name) && is_meant(name)) {
        meant.push_back(name);
      }
    }
    if (meant.empty()) continue;
    const std::string path = JoinedPath(directory, folder);
    // Read behind the list: what it lists was there before.
    ASSIGN_OR_RETURN(const auto listed, ListedFiles(path));
    if (!listed.has_value()) continue;
    for (const std::string& name : meant) {
      if (!listed->contains(name)) found.push_back(JoinedPath(path, name));
    }
  }
  return found;
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
    const std::string& path, const durable::CheckpointManifest& manifest) {
  ASSIGN_OR_RETURN(const RemoteListing listing, ListRemote(path));
  const auto folder = listing.find("");
  for (const durable::CheckpointFile& file : manifest.file()) {
    const std::string of_file = JoinedPath(path, file.name());
    if (folder == listing.end() || !folder->second.contains(file.name())) {
      return absl::DataLossError(absl::StrCat(
          of_file, ": is missing; do ps and chief write to one store?"));
    }
    const uint64_t bytes = folder->second.at(file.name());
    if (bytes != file.bytes()) {
      return absl::DataLossError(absl::StrCat(
          of_file, ": has ", bytes, " bytes, should have ", file.bytes()));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyRemoteFile(const std::string& path,
                              const durable::CheckpointFile& file) {
  const std::string of_file = JoinedPath(path, file.name());
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

absl::Status RemoveRemoteCheckpoint(
    const std::string& path, absl::FunctionRef<absl::Status()> may_remove) {
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
  RETURN_IF_ERROR(may_remove());
  RETURN_IF_ERROR(files->Remove(JoinedPath(path, kManifestName)));
  // Tries that failed took their time.
  RETURN_IF_ERROR(may_remove());
  return files->RemoveFolder(path);
}

absl::Status RemoveRemoteRest(const std::string& directory,
                              absl::FunctionRef<absl::Status()> may_remove) {
  ASSIGN_OR_RETURN(
      const std::vector<std::string> rest,
      Unlisted(directory, [](const std::string&) { return true; }));
  if (rest.empty()) return absl::OkStatus();
  // What was listed before is no next owner's.
  RETURN_IF_ERROR(may_remove());
  return RemoveAll(rest);
}

absl::Status RemoveRemoteAttempt(const std::string& working_directory) {
  const std::string working = LastName(working_directory);
  const std::string attempt =
      absl::StrCat(working.substr(working.rfind('-')), ".sst");
  ASSIGN_OR_RETURN(const std::vector<std::string> files,
                   Unlisted(ParentPath(working_directory),
                            [&attempt](const std::string& name) {
                              return absl::EndsWith(name, attempt);
                            }));
  // Nobody else's files have these names.
  return RemoveAll(files);
}

}  // namespace parasol

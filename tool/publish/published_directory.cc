#include "tool/publish/published_directory.h"

#include <cstddef>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr absl::string_view kWorkFolder = ".publisher";
constexpr absl::string_view kStaged = "staged";
constexpr absl::string_view kRemoved = "removed";
constexpr absl::string_view kNextState = "next.safetensors";
constexpr absl::string_view kStateSuffix = ".safetensors";
// A manifest has some 200 bytes for each tensor.
constexpr size_t kMaxManifestBytes = size_t{256} << 20;

absl::StatusOr<PublishedVersion> ReadVersion(const std::string& path,
                                             int64_t number) {
  const std::string manifest = absl::StrCat(path, "/", kVersionManifest);
  ASSIGN_OR_RETURN(const std::string text,
                   ReadFile(manifest, kMaxManifestBytes));
  ASSIGN_OR_RETURN(PublishedVersion version, ParseManifest(text, manifest));
  if (version.version == number) return version;
  return absl::DataLossError(absl::StrCat(
      manifest, ": is of ", VersionName(version.version), ", not of ", path));
}

// Returns OK if this program can read the manifest `text` of `version`.
absl::Status CheckReadable(const std::string& text,
                           const PublishedVersion& version,
                           const std::string& path) {
  absl::Status readable = ParseManifest(text, kVersionManifest).status();
  if (text.size() > kMaxManifestBytes) {
    readable = absl::DataLossError(
        absl::StrCat(kVersionManifest, ": has ", text.size(),
                     " bytes, more than ", kMaxManifestBytes));
  }
  if (readable.ok()) return readable;
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": can't be published: the manifest of its ",
                   version.tensors.size(),
                   " tensors could not be read again: ", readable.message()));
}

void WarnUnlessOk(const absl::Status& status) {
  if (!status.ok()) LOG(WARNING) << status.message();
}

}  // namespace

absl::StatusOr<PublishedDirectory> PublishedDirectory::Open(
    const std::string& directory) {
  const std::string work = absl::StrCat(directory, "/", kWorkFolder);
  RETURN_IF_ERROR(MakeDirectories(work));
  std::optional<DirectoryLock> lock = DirectoryLock::TryExclude(work);
  if (!lock) {
    return absl::UnavailableError(absl::StrCat(
        work,
        ": another process publishes there; end it, or give another "
        "--output (the file system must have locks)"));
  }
  PublishedDirectory published(directory, *std::move(lock));
  RETURN_IF_ERROR(published.ReadVersions());
  RETURN_IF_ERROR(published.Abandon());
  return published;
}

const PublishedVersion* PublishedDirectory::newest() const {
  return versions_.empty() ? nullptr : &versions_.rbegin()->second;
}

std::string PublishedDirectory::PathOf(int64_t version) const {
  return absl::StrCat(directory_, "/", VersionName(version));
}

std::string PublishedDirectory::WorkPath(absl::string_view name) const {
  return absl::StrCat(directory_, "/", kWorkFolder, "/", name);
}

absl::Status PublishedDirectory::Abandon() const {
  const std::string state = newest() == nullptr ? "" : StatePath();
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ListDirectory(WorkPath("")));
  for (const std::string& name : names) {
    if (WorkPath(name) == state) continue;
    RETURN_IF_ERROR(RemoveTree(WorkPath(name)));
  }
  return absl::OkStatus();
}

absl::Status PublishedDirectory::ReadVersions() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ListDirectory(directory_));
  std::map<int64_t, absl::Status> unreadable;
  for (const std::string& name : names) {
    const std::optional<int64_t> number = VersionOfName(name);
    if (!number) continue;
    absl::StatusOr<PublishedVersion> version =
        ReadVersion(PathOf(*number), *number);
    if (version.ok()) {
      Insert(*std::move(version));
    } else if (absl::IsNotFound(version.status()) ||
               absl::IsDataLoss(version.status())) {
      unreadable.emplace(*number, version.status());
    } else {
      return version.status();
    }
  }
  for (const auto& [number, why] : unreadable) {
    if (versions_.empty() || number > versions_.rbegin()->first) {
      return absl::DataLossError(
          absl::StrCat(why.message(), "; give an empty --output"));
    }
    LOG(WARNING) << why.message() << "; receivers pass over " << PathOf(number)
                 << ", and nothing else removes it: remove it";
  }
  return absl::OkStatus();
}

void PublishedDirectory::Insert(PublishedVersion version) {
  const int64_t number = version.version;
  const auto at = versions_.insert_or_assign(number, std::move(version)).first;
  if (std::next(at) != versions_.end()) {
    at->second.tensors = {};
  } else if (at != versions_.begin()) {
    std::prev(at)->second.tensors = {};
  }
}

absl::Status PublishedDirectory::CheckChain() const {
  for (int64_t number = newest()->version;; --number) {
    const auto found = versions_.find(number);
    if (found == versions_.end()) {
      return absl::NotFoundError(absl::StrCat(
          PathOf(number), ": is not there, or its manifest is damaged"));
    }
    RETURN_IF_ERROR(
        FileSize(absl::StrCat(PathOf(number), "/", kVersionManifest)).status());
    for (const auto& [name, bytes] : found->second.files) {
      const std::string path = absl::StrCat(PathOf(number), "/", name);
      ASSIGN_OR_RETURN(const uint64_t there, FileSize(path));
      if (there == bytes) continue;
      return absl::DataLossError(absl::StrCat(
          path, ": has ", there, " bytes, and was written with ", bytes));
    }
    if (!found->second.base) return absl::OkStatus();
  }
}

int PublishedDirectory::ChainLength() const {
  int length = 0;
  for (auto version = versions_.rbegin(); version != versions_.rend();
       ++version) {
    ++length;
    if (!version->second.base) break;
  }
  return length;
}

std::string PublishedDirectory::StatePath() const {
  const PublishedVersion& version = *newest();
  if (!version.base) {
    return absl::StrCat(PathOf(version.version), "/", kVersionTensors);
  }
  return WorkPath(absl::StrCat(VersionName(version.version), kStateSuffix));
}

std::string PublishedDirectory::NextStatePath() const {
  return WorkPath(kNextState);
}

absl::StatusOr<std::string> PublishedDirectory::Stage() {
  const std::string staged = WorkPath(kStaged);
  RETURN_IF_ERROR(RemoveTree(staged));
  RETURN_IF_ERROR(MakeDirectories(staged));
  return staged;
}

absl::Status PublishedDirectory::Commit(PublishedVersion version) {
  const std::string staged = WorkPath(kStaged);
  const std::string path = PathOf(version.version);
  const std::string text = ManifestText(version);
  RETURN_IF_ERROR(CheckReadable(text, version, path));
  RETURN_IF_ERROR(
      WriteFileDurably(absl::StrCat(staged, "/", kVersionManifest), text));
  RETURN_IF_ERROR(SyncDirectory(staged));
  RETURN_IF_ERROR(Rename(staged, path));
  const bool has_state = version.base.has_value();
  Insert(std::move(version));
  // What fails from here on does not undo the version: it has its name.
  WarnUnlessOk(SyncDirectory(directory_));
  // Without this the next version is whole.
  if (has_state) WarnUnlessOk(Rename(NextStatePath(), StatePath()));
  WarnUnlessOk(Abandon());
  return absl::OkStatus();
}

void PublishedDirectory::Prune(int max_to_keep) {
  WarnUnlessOk(RemoveOldest(max_to_keep));
}

absl::Status PublishedDirectory::RemoveOldest(int max_to_keep) {
  if (max_to_keep == 0 ||
      versions_.size() <= static_cast<size_t>(max_to_keep)) {
    return absl::OkStatus();
  }
  auto first = std::prev(versions_.end(), max_to_keep);
  while (first->second.base && first != versions_.begin()) --first;
  // From the newest one back, as one builds on the one before it. Each loses
  // its name first, and then its files.
  while (versions_.begin() != first) {
    const auto last = std::prev(first);
    const std::string removed = WorkPath(kRemoved);
    RETURN_IF_ERROR(RemoveTree(removed));
    const absl::Status renamed = Rename(PathOf(last->first), removed);
    if (!renamed.ok() && !absl::IsNotFound(renamed)) return renamed;
    versions_.erase(last);
    RETURN_IF_ERROR(RemoveTree(removed));
  }
  return SyncDirectory(directory_);
}

}  // namespace parasol

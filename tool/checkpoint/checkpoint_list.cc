#include "tool/checkpoint/checkpoint_list.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "storage/checked_file.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"
#include "storage/remote_checkpoints.h"

namespace parasol {
namespace {

// A checkpoint that is replaced meanwhile is looked at so many times.
constexpr int kMostLooks = 5;

// The damage that `status` tells of goes to `damage`; other errors are
// returned.
absl::Status NoteDamage(const absl::Status& status,
                        std::vector<std::string>& damage) {
  if (!absl::IsDataLoss(status)) return status;
  damage.emplace_back(status.message());
  return absl::OkStatus();
}

// What VerifyRemoteFile() has returned of files of a store, by their paths and
// what manifests say of them: several checkpoints list one, and it is read
// once.
using Verified = std::map<std::string, absl::Status>;

absl::Status VerifyOnce(const std::string& path,
                        const durable::CheckpointFile& file,
                        Verified& verified) {
  const auto [known, is_new] =
      verified.emplace(absl::StrCat(file.bytes(), " ", file.crc32c(), " ",
                                    ListedPath(path, file.name())),
                       absl::OkStatus());
  if (is_new) known->second = VerifyRemoteFile(path, file);
  const absl::Status status = known->second;
  // Anything else may pass.
  if (!status.ok() && !absl::IsDataLoss(status)) verified.erase(known);
  return status;
}

// Compares each file's size, and all of its bytes, with the manifest.
absl::Status VerifyFiles(const std::string& path,
                         const durable::CheckpointManifest& manifest, Look look,
                         Verified& verified, std::vector<std::string>& damage) {
  if (IsUri(path)) {
    const absl::Status sizes = CheckRemoteCheckpoint(path, manifest);
    if (!sizes.ok() || look == Look::kEnds) return NoteDamage(sizes, damage);
    for (const durable::CheckpointFile& file : manifest.file()) {
      RETURN_IF_ERROR(NoteDamage(VerifyOnce(path, file, verified), damage));
    }
    return absl::OkStatus();
  }
  for (const durable::CheckpointFile& file : manifest.file()) {
    const std::string name = ListedPath(path, file.name());
    const auto checked = CheckedFile::Open(name, file);
    if (absl::IsNotFound(checked.status())) {
      // Its checkpoint may be gone with it.
      RETURN_IF_ERROR(ReadManifestBytes(path).status());
      damage.push_back(absl::StrCat(name, ": is missing"));
      continue;
    }
    RETURN_IF_ERROR(NoteDamage(checked.status(), damage));
    if (!checked.ok() || look == Look::kEnds) continue;
    RETURN_IF_ERROR(NoteDamage((*checked)->Verify(), damage));
  }
  return absl::OkStatus();
}

void Describe(const durable::CheckpointManifest& manifest,
              CheckpointSummary& listed) {
  listed.step = manifest.global_step();
  listed.written = absl::FromUnixMicros(manifest.created_unix_micros());
  listed.is_final = manifest.final();
  listed.files = manifest.file_size();
  for (const durable::CheckpointFile& file : manifest.file()) {
    listed.bytes += file.bytes();
    listed.increments =
        std::max(listed.increments, static_cast<int>(file.increment()));
  }
}

// Fills `listed` with what the checkpoint at `path` is, whose manifest was read
// as `bytes`. Its damage goes to `listed`; other errors are returned.
absl::Status LookAt(const std::string& path,
                    const absl::StatusOr<std::string>& bytes, Look look,
                    Verified& verified, CheckpointSummary& listed) {
  if (absl::IsNotFound(bytes.status()) && IsDirectory(path)) {
    listed.damage.push_back(
        absl::StrCat(JoinedPath(path, kManifestName), ": is missing"));
    return absl::OkStatus();
  }
  if (!bytes.ok()) return NoteDamage(bytes.status(), listed.damage);
  const auto manifest = DecodeManifestIn(path, *bytes);
  if (!manifest.ok()) return NoteDamage(manifest.status(), listed.damage);
  Describe(*manifest, listed);
  RETURN_IF_ERROR(VerifyFiles(path, *manifest, look, verified, listed.damage));
  // To open it would bring it all here.
  if (IsUri(path)) return absl::OkStatus();
  // Opening compares what the files say of themselves.
  const auto reader = CheckpointReader::Open(path);
  if (reader.ok()) {
    ASSIGN_OR_RETURN(const auto journals, (*reader)->Journals());
    listed.journals = static_cast<int>(journals.size());
  } else if (listed.damage.empty() || !absl::IsDataLoss(reader.status())) {
    RETURN_IF_ERROR(NoteDamage(reader.status(), listed.damage));
  }
  return absl::OkStatus();
}

bool IsReplaced(const std::string& path,
                const absl::StatusOr<std::string>& before) {
  const absl::StatusOr<std::string> now = ReadManifestBytes(path);
  return before.ok() != now.ok() || (now.ok() && *now != *before);
}

// Returns NotFound if there is no checkpoint; any other error is in the result.
absl::StatusOr<CheckpointSummary> ListOne(const std::string& path, Look look,
                                          Verified& verified) {
  CheckpointSummary listed;
  listed.path = path;
  listed.step = StepOfName(LastName(path)).value_or(0);
  for (int i = 0; i < kMostLooks; ++i) {
    CheckpointSummary seen = listed;
    const absl::StatusOr<std::string> manifest = ReadManifestBytes(path);
    seen.unreadable = LookAt(path, manifest, look, verified, seen);
    // Files of another checkpoint than the manifest's only look damaged.
    if (!seen.damage.empty() && IsReplaced(path, manifest)) continue;
    if (absl::IsNotFound(seen.unreadable)) return seen.unreadable;
    return seen;
  }
  listed.unreadable = absl::UnavailableError(absl::StrCat(
      path, ": was replaced ", kMostLooks, " times meanwhile; try again"));
  return listed;
}

// Returns the directory that the checkpoint `path` lies in.
std::string DirectoryOf(const std::string& path) {
  if (IsUri(path)) return ParentPath(path);
  std::filesystem::path checkpoint(path);
  const std::string name = checkpoint.filename().string();
  if (name == "." || name == "..") {
    std::error_code error;
    const std::filesystem::path full =
        std::filesystem::canonical(checkpoint, error);
    if (!error) checkpoint = full;
  }
  const std::string directory = checkpoint.parent_path().string();
  return directory.empty() ? "." : directory;
}

}  // namespace

absl::Status CheckpointList::Unreadable() const {
  for (const CheckpointSummary& checkpoint : checkpoints) {
    RETURN_IF_ERROR(checkpoint.unreadable);
  }
  return absl::OkStatus();
}

bool CheckpointList::HasDamage() const {
  return std::any_of(checkpoints.begin(), checkpoints.end(),
                     [](const CheckpointSummary& checkpoint) {
                       return !checkpoint.damage.empty();
                     });
}

absl::StatusOr<CheckpointList> ListCheckpoints(const std::string& path,
                                               Look look) {
  std::string name = path;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  CheckpointList list;
  std::vector<std::string> paths;
  const bool has_step = StepOfName(LastName(name)).has_value();
  const bool is_one = has_step || DirectoryOfBest(name).has_value() ||
                      FileSize(JoinedPath(name, kManifestName)).ok();
  if (is_one) {
    // A checkpoint without a manifest is one still.
    const auto of_best = DirectoryOfBest(name);
    if (of_best.has_value()) {
      ASSIGN_OR_RETURN(const BestCheckpoint found, ReadBest(*of_best));
      name = found.path;
    } else if (!has_step && !IsUri(name)) {
      ASSIGN_OR_RETURN(name, CheckpointAt(name));
    }
    list.directory = DirectoryOf(name);
    paths.push_back(name);
  } else {
    RETURN_IF_ERROR(ListDirectory(name).status());
    list.directory = name;
    const CheckpointStore store(name);
    ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store.ListSteps());
    for (const int64_t step : steps) paths.push_back(store.PathOf(step));
  }
  const absl::StatusOr<BestCheckpoint> best = ReadBest(list.directory);
  Verified verified;
  for (const std::string& checkpoint : paths) {
    absl::StatusOr<CheckpointSummary> listed =
        ListOne(checkpoint, look, verified);
    if (absl::IsNotFound(listed.status()) && !is_one) continue;
    RETURN_IF_ERROR(listed.status());
    listed->is_best = best.ok() && best->global_step == listed->step;
    list.checkpoints.push_back(*std::move(listed));
  }
  return list;
}

}  // namespace parasol

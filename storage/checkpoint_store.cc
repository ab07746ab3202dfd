#include "storage/checkpoint_store.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/random/random.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "storage/checked_file.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"
#include "storage/durable_file.h"
#include "storage/remote/remote_directory.h"
#include "storage/remote/remote_files.h"
#include "storage/remote_checkpoints.h"

namespace parasol {
namespace {

constexpr absl::string_view kSstSuffix = ".sst";
constexpr absl::string_view kWorkingPrefix = ".tmp-ckpt-";
constexpr absl::string_view kPrunedPrefix = ".tmp-pruned-";
constexpr absl::string_view kReplacedPrefix = ".old-ckpt-";

std::string RandomDigits() {
  return absl::StrFormat("%016x", absl::Uniform<uint64_t>(absl::BitGen()));
}

absl::Status ProbeWriting(const std::string& directory) {
  const std::string name = absl::StrCat(kPrunedPrefix, "probe");
  if (IsUri(directory)) {
    // One that stays is replaced by the next one.
    const std::string probe = JoinedPath(directory, name);
    RETURN_IF_ERROR(WriteFileDurably(probe, "probe"));
    ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(directory));
    return files->Remove(probe);
  }
  const std::string probe =
      absl::StrCat(directory, "/", name, "-", RandomDigits());
  const absl::Status written = WriteFileDurably(probe, "probe");
  unlink(probe.c_str());
  return written;
}

// Readers never see the checkpoint without some of its files.
absl::Status RemoveAtOnce(const std::string& directory, int64_t step) {
  const std::string pruned = absl::StrCat(
      directory, "/", kPrunedPrefix, StepDigits(step), "-", RandomDigits());
  RETURN_IF_ERROR(
      Rename(absl::StrCat(directory, "/", CheckpointName(step)), pruned));
  return RemoveTree(pruned);
}

// Removes what `final` has replaced. The name of `final` is made durable first:
// until then a crash may bring back the old one.
absl::Status RemoveReplaced(const std::string& replaced,
                            const std::string& final) {
  std::error_code error;
  if (std::filesystem::symlink_status(replaced, error).type() ==
      std::filesystem::file_type::not_found) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(
      SyncDirectory(std::filesystem::path(final).parent_path().string()));
  return RemoveTree(replaced);
}

// Completes replacements that were interrupted, or takes them back.
absl::Status RecoverReplaced(const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ListDirectory(directory));
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kReplacedPrefix)) continue;
    const std::string replaced = absl::StrCat(directory, "/", name);
    const std::string successor = absl::StrCat(
        directory, "/ckpt-", absl::StripPrefix(name, kReplacedPrefix));
    if (IsDirectory(successor)) {
      RETURN_IF_ERROR(RemoveReplaced(replaced, successor));
    } else {
      const absl::Status renamed = Rename(replaced, successor);
      if (absl::IsInvalidArgument(renamed)) {
        // Something that is no checkpoint has the name.
        LOG(WARNING) << renamed.message();
      } else if (!absl::IsNotFound(renamed)) {
        RETURN_IF_ERROR(renamed);
      }
    }
  }
  return absl::OkStatus();
}

// Removes working directories, and what is left of those being removed. A
// writer that still believes to own the directory can't commit them any more:
// each loses its name before its files.
absl::Status RemoveUnfinished(const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ListDirectory(directory));
  for (const std::string& name : names) {
    std::string path = absl::StrCat(directory, "/", name);
    if (absl::StartsWith(name, kWorkingPrefix)) {
      const std::string removed = absl::StrCat(
          directory, "/", kPrunedPrefix, name.substr(kWorkingPrefix.size()));
      const absl::Status renamed = Rename(path, removed);
      if (absl::IsNotFound(renamed))
        continue;  // committed or removed meanwhile
      RETURN_IF_ERROR(renamed);
      path = removed;
    } else if (!absl::StartsWith(name, kPrunedPrefix)) {
      continue;
    }
    // The next Prune() tries again.
    const absl::Status gone = RemoveTree(path);
    if (!gone.ok()) LOG(WARNING) << gone.message();
  }
  return absl::OkStatus();
}

absl::Status CheckFilesAreThere(const std::string& directory,
                                const durable::CheckpointManifest& manifest) {
  if (IsUri(directory)) return CheckRemoteCheckpoint(directory, manifest);
  for (const durable::CheckpointFile& file : manifest.file()) {
    const std::string path = ListedPath(directory, file.name());
    const absl::StatusOr<uint64_t> bytes = FileSize(path);
    if (absl::IsNotFound(bytes.status())) {
      return absl::DataLossError(absl::StrCat(
          path, ": is missing; do ps and chief see the same file system?"));
    }
    RETURN_IF_ERROR(bytes.status());
    if (*bytes != file.bytes()) {
      return absl::DataLossError(absl::StrCat(
          path, ": has ", *bytes, " bytes, should have ", file.bytes()));
    }
  }
  return absl::OkStatus();
}

// The checkpoints that stay, as CheckpointStore::Prune() has them.
struct Kept {
  int max_to_keep = 0;
  int64_t newest = INT64_MAX;
  absl::Span<const int64_t> spared;
};

// Returns the ones of `steps`, ascending, that don't stay. What has a
// checkpoint's name and `is_none` takes no other's place. Pure but for that.
std::vector<int64_t> StepsToRemove(std::vector<int64_t> steps, const Kept& kept,
                                   absl::FunctionRef<bool(int64_t)> is_none) {
  if (kept.max_to_keep <= 0) return {};
  std::erase_if(steps, [&kept](int64_t step) { return step > kept.newest; });
  for (const int64_t step : kept.spared) std::erase(steps, step);
  int stay = 0;
  while (!steps.empty() && stay < kept.max_to_keep) {
    if (!is_none(steps.back())) ++stay;
    steps.pop_back();
  }
  return steps;
}

// Gives `working` the name `final`, and what has that name now the name
// `replaced`. After an error `working` has its name still. Returns true if
// something was replaced.
absl::StatusOr<bool> Publish(const std::string& working,
                             const std::string& final,
                             const std::string& replaced) {
  std::error_code error;
  const auto type = std::filesystem::symlink_status(final, error).type();
  if (type == std::filesystem::file_type::not_found) {
    RETURN_IF_ERROR(Rename(working, final));
    return false;
  }
  RETURN_IF_ERROR(RemoveReplaced(replaced, final));
  const absl::Status exchanged = Exchange(working, final);
  if (exchanged.ok()) {
    // Abandon() must not find the replaced one under the name of the new one.
    const absl::Status renamed = Rename(working, replaced);
    if (!renamed.ok()) LOG(WARNING) << renamed.message();
    return true;
  }
  if (!absl::IsUnimplemented(exchanged)) return exchanged;
  // A new owner may have taken the working directory away.
  RETURN_IF_ERROR(FileSize(absl::StrCat(working, "/", kManifestName)).status());
  RETURN_IF_ERROR(Rename(final, replaced));
  const absl::Status renamed = Rename(working, final);
  if (renamed.ok()) return true;
  const absl::Status taken_back = Rename(replaced, final);
  if (!taken_back.ok()) LOG(WARNING) << taken_back.message();
  return renamed;
}

}  // namespace

CheckpointStore::CheckpointStore(std::string directory)
    : directory_(std::move(directory)) {}

bool CheckpointStore::IsWorkingName(absl::string_view name) {
  return absl::ConsumePrefix(&name, kWorkingPrefix) && !name.empty() &&
         name.find_first_not_of("0123456789abcdef-") == name.npos;
}

std::string CheckpointStore::PathInWorking(const std::string& working_directory,
                                           absl::string_view name) {
  if (!IsUri(working_directory)) {
    return absl::StrCat(working_directory, "/", name);
  }
  const std::string working = LastName(working_directory);
  absl::string_view digits = working;
  absl::ConsumePrefix(&digits, kWorkingPrefix);
  return JoinedPath(
      ParentPath(working_directory),
      absl::StrCat("ckpt-", digits.substr(0, digits.find('-')), "/", name));
}

std::string CheckpointStore::NameInWorking(const std::string& working_directory,
                                           const std::string& name) {
  if (!IsUri(working_directory)) return name;
  const std::string working = LastName(working_directory);
  return absl::StrCat(absl::StripSuffix(name, kSstSuffix),
                      working.substr(working.rfind('-')), kSstSuffix);
}

std::string CheckpointStore::WorkingAt(const std::string& working_directory,
                                       int64_t step) {
  if (!IsUri(working_directory)) return working_directory;
  const std::string working = LastName(working_directory);
  return JoinedPath(ParentPath(working_directory),
                    absl::StrCat(kWorkingPrefix, StepDigits(step),
                                 working.substr(working.rfind('-'))));
}

absl::StatusOr<CheckpointStore> CheckpointStore::OpenForWriting(
    const std::string& directory,
    absl::FunctionRef<absl::Status()> may_remove) {
  RETURN_IF_ERROR(MakeDirectories(directory)) << "checkpoint directory";
  RETURN_IF_ERROR(ProbeWriting(directory))
      << "checkpoint directory " << directory;
  if (IsUri(directory)) {
    ASSIGN_OR_RETURN(const StoredCheckpoints stored,
                     StoredCheckpoints::Look(directory),
                     _ << "checkpoint directory");
    RETURN_IF_ERROR(RemoveUnlisted(stored, may_remove))
        << "checkpoint directory";
    return CheckpointStore(directory);
  }
  RETURN_IF_ERROR(RecoverReplaced(directory))
      << "checkpoint directory " << directory;
  RETURN_IF_ERROR(RemoveUnfinished(directory))
      << "checkpoint directory " << directory;
  return CheckpointStore(directory);
}

absl::StatusOr<std::vector<int64_t>> CheckpointStore::ListSteps() const {
  if (IsUri(directory_)) return RemoteSteps(directory_);
  const absl::StatusOr<std::vector<std::string>> names =
      ListDirectory(directory_);
  std::vector<int64_t> steps;
  if (absl::IsNotFound(names.status())) return steps;
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (const std::optional<int64_t> step = StepOfName(name)) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string CheckpointStore::PathOf(int64_t step) const {
  return IsUri(directory_)
             ? JoinedPath(directory_, CheckpointName(step))
             : absl::StrCat(directory_, "/", CheckpointName(step));
}

absl::StatusOr<durable::CheckpointManifest> CheckpointStore::ReadManifest(
    int64_t step) const {
  ASSIGN_OR_RETURN(const std::string bytes, ReadManifestBytes(PathOf(step)));
  return DecodeManifestIn(PathOf(step), bytes);
}

absl::Status CheckpointStore::CheckComplete(int64_t step) const {
  ASSIGN_OR_RETURN(const durable::CheckpointManifest manifest,
                   ReadManifest(step));
  return CheckFilesAreThere(PathOf(step), manifest);
}

absl::Status CheckpointStore::Verify(
    int64_t step, const std::function<bool()>& cancelled) const {
  ASSIGN_OR_RETURN(const durable::CheckpointManifest manifest,
                   ReadManifest(step));
  RETURN_IF_ERROR(CheckFilesAreThere(PathOf(step), manifest));
  for (const durable::CheckpointFile& file : manifest.file()) {
    if (cancelled()) {
      return absl::CancelledError(
          absl::StrCat("stopped while verifying ", PathOf(step)));
    }
    if (IsUri(directory_)) {
      RETURN_IF_ERROR(VerifyRemoteFile(PathOf(step), file));
      continue;
    }
    ASSIGN_OR_RETURN(
        const auto checked,
        CheckedFile::Open(ListedPath(PathOf(step), file.name()), file));
    RETURN_IF_ERROR(checked->Verify());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> CheckpointStore::NewestComplete(
    const std::set<int64_t>& damaged) const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListSteps());
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (damaged.contains(*step)) continue;
    const absl::Status checked = CheckComplete(*step);
    if (checked.ok()) return *step;
    if (!absl::IsDataLoss(checked) && !absl::IsNotFound(checked)) {
      return checked;
    }
    LOG(WARNING) << "passing over a damaged checkpoint: " << checked.message();
  }
  return std::nullopt;
}

absl::StatusOr<std::string> CheckpointStore::Begin(int64_t step) {
  CHECK_GE(step, 0);
  const std::string name =
      absl::StrCat(kWorkingPrefix, StepDigits(step), "-", RandomDigits());
  if (IsUri(directory_)) return JoinedPath(directory_, name);
  const std::string working = absl::StrCat(directory_, "/", name);
  if (absl::IsNotFound(ListDirectory(directory_).status())) {
    LOG(WARNING) << "checkpoint directory " << directory_
                 << " was removed while it was in use: making it again";
    RETURN_IF_ERROR(MakeDirectories(directory_)) << "checkpoint directory";
  }
  std::error_code error;
  std::filesystem::create_directory(working, error);
  if (error) return FileError(error.value(), "make", working);
  return working;
}

absl::Status CheckpointStore::Commit(
    const std::string& working_directory,
    const durable::CheckpointManifest& manifest,
    absl::FunctionRef<absl::Status()> may_write) {
  const std::string name = LastName(working_directory);
  if (!IsWorkingName(name) ||
      working_directory != (IsUri(directory_)
                                ? JoinedPath(directory_, name)
                                : absl::StrCat(directory_, "/", name))) {
    return absl::InvalidArgumentError(
        absl::StrCat(working_directory, " was not begun in ", directory_));
  }
  CHECK_GE(manifest.global_step(), 0);
  RETURN_IF_ERROR(CheckFileNames(manifest));
  const int64_t step = manifest.global_step();
  RETURN_IF_ERROR(CheckFilesAreThere(
      IsUri(directory_) ? PathOf(step) : working_directory, manifest));
  durable::CheckpointManifest stamped = manifest;
  stamped.set_format_version(FormatVersionFor(manifest));
  if (IsUri(directory_)) {
    return WriteChecked(JoinedPath(PathOf(step), kManifestName),
                        EncodeManifest(stamped), may_write);
  }
  RETURN_IF_ERROR(
      WriteFileDurably(absl::StrCat(working_directory, "/", kManifestName),
                       EncodeManifest(stamped)));
  RETURN_IF_ERROR(SyncDirectory(working_directory));
  const std::string replaced =
      absl::StrCat(directory_, "/", kReplacedPrefix, StepDigits(step));
  ASSIGN_OR_RETURN(const bool has_replaced,
                   Publish(working_directory, PathOf(step), replaced));
  // Until the new name is durable, a crash may bring the old one back: if this
  // fails both stay, and the next Prune() removes the old one.
  RETURN_IF_ERROR(SyncDirectory(directory_));
  if (!has_replaced) return absl::OkStatus();
  Abandon(replaced);
  return absl::OkStatus();
}

void CheckpointStore::Abandon(const std::string& working_directory,
                              absl::FunctionRef<absl::Status()> may_remove) {
  const absl::Status removed =
      IsUri(directory_) ? RemoveRemoteAttempt(working_directory, may_remove)
                        : RemoveTree(working_directory);
  if (!removed.ok()) LOG(WARNING) << removed.message();
}

absl::Status CheckpointStore::Prune(
    int max_to_keep, int64_t newest, absl::Span<const int64_t> spared,
    absl::FunctionRef<absl::Status()> may_remove) {
  const Kept kept = {
      .max_to_keep = max_to_keep, .newest = newest, .spared = spared};
  if (IsUri(directory_)) {
    ASSIGN_OR_RETURN(StoredCheckpoints stored,
                     StoredCheckpoints::Look(directory_));
    RETURN_IF_ERROR(RemoveUnlisted(stored, may_remove));
    const std::vector<int64_t> old = StepsToRemove(
        stored.Steps(), kept,
        [&stored](int64_t step) { return stored.IsDamaged(step); });
    return old.empty() ? absl::OkStatus() : stored.Remove(old, may_remove);
  }
  RETURN_IF_ERROR(RecoverReplaced(directory_));
  RETURN_IF_ERROR(RemoveUnfinished(directory_));
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListSteps());
  std::vector<int64_t> old = StepsToRemove(steps, kept, [this](int64_t step) {
    return absl::IsDataLoss(ReadManifest(step).status());
  });
  if (old.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::set<int64_t> continued, Continued(steps, old));
  for (const int64_t step : old) {
    if (continued.contains(step)) continue;
    RETURN_IF_ERROR(RemoveAtOnce(directory_, step));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::set<int64_t>> CheckpointStore::Continued(
    absl::Span<const int64_t> steps, absl::Span<const int64_t> old) const {
  std::set<int64_t> continued;
  for (const int64_t step : steps) {
    if (std::find(old.begin(), old.end(), step) != old.end()) continue;
    const auto manifest = ReadManifest(step);
    if (absl::IsDataLoss(manifest.status()) ||
        absl::IsNotFound(manifest.status())) {
      continue;
    }
    if (absl::IsFailedPrecondition(manifest.status())) {
      // A newer program's may list any of those before it.
      for (const int64_t before : steps) {
        if (before < step) continued.insert(before);
      }
      continue;
    }
    RETURN_IF_ERROR(manifest.status());
    for (const durable::CheckpointFile& file : manifest->file()) {
      const std::optional<ListedName> name = ParseListedName(file.name());
      if (name.has_value() && name->step) continued.insert(*name->step);
    }
  }
  return continued;
}

}  // namespace parasol

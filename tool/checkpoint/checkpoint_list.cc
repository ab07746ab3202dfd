#include "tool/checkpoint/checkpoint_list.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "storage/checked_file.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

// The damage that `status` tells of goes to `damage`; other errors are
// returned.
absl::Status NoteDamage(const absl::Status& status,
                        std::vector<std::string>& damage) {
  if (!absl::IsDataLoss(status)) return status;
  damage.emplace_back(status.message());
  return absl::OkStatus();
}

// Compares each file's size, and all of its bytes, with the manifest.
absl::Status VerifyFiles(const std::string& path,
                         const durable::CheckpointManifest& manifest, Look look,
                         std::vector<std::string>& damage) {
  for (const durable::CheckpointFile& file : manifest.file()) {
    const std::string name = absl::StrCat(path, "/", file.name());
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

absl::StatusOr<CheckpointSummary> ListOne(const std::string& path, Look look) {
  CheckpointSummary listed;
  listed.path = path;
  const std::filesystem::path name(path);
  listed.step = StepOfName(name.filename().string()).value_or(0);
  const auto bytes = ReadManifestBytes(path);
  if (absl::IsNotFound(bytes.status()) && IsDirectory(path)) {
    listed.damage.push_back(
        absl::StrCat(path, "/", kManifestName, ": is missing"));
    return listed;
  }
  RETURN_IF_ERROR(NoteDamage(bytes.status(), listed.damage));
  if (!bytes.ok()) return listed;
  const auto manifest = DecodeManifestIn(path, *bytes);
  RETURN_IF_ERROR(NoteDamage(manifest.status(), listed.damage));
  if (!manifest.ok()) return listed;
  Describe(*manifest, listed);
  RETURN_IF_ERROR(VerifyFiles(path, *manifest, look, listed.damage));
  // What the files say of themselves, and whether they fit together.
  const auto reader = CheckpointReader::Open(path);
  if (reader.ok()) {
    ASSIGN_OR_RETURN(const auto journals, (*reader)->Journals());
    listed.journals = static_cast<int>(journals.size());
  } else if (listed.damage.empty() || !absl::IsDataLoss(reader.status())) {
    RETURN_IF_ERROR(NoteDamage(reader.status(), listed.damage));
  }
  return listed;
}

}  // namespace

bool CheckpointList::HasDamage() const {
  return std::any_of(checkpoints.begin(), checkpoints.end(),
                     [](const CheckpointSummary& checkpoint) {
                       return !checkpoint.damage.empty();
                     });
}

absl::StatusOr<CheckpointList> ListCheckpoints(const std::string& path,
                                               Look look) {
  CheckpointList list;
  std::vector<std::string> paths;
  const bool is_one =
      DirectoryOfBest(path).has_value() ||
      StepOfName(std::filesystem::path(path).filename().string()).has_value() ||
      FileSize(absl::StrCat(path, "/", kManifestName)).ok();
  if (is_one) {
    ASSIGN_OR_RETURN(const std::string one, CheckpointAt(path));
    list.directory = std::filesystem::path(one).parent_path().string();
    paths.push_back(one);
  } else {
    RETURN_IF_ERROR(ListDirectory(path).status());
    list.directory = path;
    const CheckpointStore store(path);
    ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store.ListSteps());
    for (const int64_t step : steps) paths.push_back(store.PathOf(step));
  }
  const absl::StatusOr<BestCheckpoint> best = ReadBest(list.directory);
  for (const std::string& checkpoint : paths) {
    absl::StatusOr<CheckpointSummary> listed = ListOne(checkpoint, look);
    if (absl::IsNotFound(listed.status()) && !is_one) continue;
    RETURN_IF_ERROR(listed.status());
    listed->is_best = best.ok() && best->global_step == listed->step;
    list.checkpoints.push_back(*std::move(listed));
  }
  return list;
}

}  // namespace parasol

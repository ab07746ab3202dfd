#include "cluster/checkpoint/saved_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/uri/uri_path.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

// Number of the run's newest checkpoints that are looked at.
constexpr int kLookedAt = 3;

bool HasFile(const durable::CheckpointManifest& manifest,
             const durable::CheckpointFile& file) {
  return std::any_of(manifest.file().begin(), manifest.file().end(),
                     [&file](const durable::CheckpointFile& entry) {
                       return IsSameFile(entry, file);
                     });
}

bool IsInCheckpoint(const std::string& directory, const std::string& run_id,
                    const durable::CheckpointFile& file) {
  const CheckpointStore store(directory);
  const absl::StatusOr<std::vector<int64_t>> steps = store.ListSteps();
  if (!steps.ok()) return false;
  int looked_at = 0;
  for (auto step = steps->rbegin(); step != steps->rend(); ++step) {
    const absl::StatusOr<durable::CheckpointManifest> manifest =
        store.ReadManifest(*step);
    if (!manifest.ok() || manifest->run_id() != run_id) continue;
    if (HasFile(*manifest, file)) return true;
    if (++looked_at == kLookedAt) return false;
  }
  return false;
}

}  // namespace

void SavedFile::Note(const std::string& working_directory,
                     const std::string& run_id, durable::CheckpointFile file,
                     int64_t progress) {
  absl::MutexLock lock(&mu_);
  files_.push_back({.directory = ParentPath(working_directory),
                    .run_id = run_id,
                    .file = std::move(file),
                    .progress = progress});
  if (files_.size() > kKept) files_.pop_front();
  is_awaited_ = false;
}

void SavedFile::Await() {
  absl::MutexLock lock(&mu_);
  is_awaited_ = true;
}

bool SavedFile::Has(int64_t progress) const {
  File newest;
  {
    absl::MutexLock lock(&mu_);
    if (files_.empty() || is_awaited_) return false;
    newest = files_.back();
  }
  return progress <= newest.progress &&
         IsInCheckpoint(newest.directory, newest.run_id, newest.file);
}

bool SavedFile::AnyHas(int64_t progress) const {
  std::deque<File> files;
  {
    absl::MutexLock lock(&mu_);
    files = files_;
  }
  return std::any_of(files.begin(), files.end(), [&](const File& file) {
    return progress <= file.progress &&
           IsInCheckpoint(file.directory, file.run_id, file.file);
  });
}

}  // namespace parasol

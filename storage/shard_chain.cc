#include "storage/shard_chain.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/checkpoint_name.h"

namespace parasol {
namespace {

// The rows of a batch whose ids no newer file has. Keeps its memory.
class OlderRows {
 public:
  // Has no later batch give the ids of this one.
  void Hide(absl::Span<const uint64_t> ids) {
    hidden_.insert(ids.begin(), ids.end());
  }

  // Appends the ids that no newer file has to `out`.
  void AddVisible(absl::Span<const uint64_t> ids,
                  std::vector<uint64_t>& out) const {
    for (const uint64_t id : ids) {
      if (!hidden_.contains(id)) out.push_back(id);
    }
  }

  // Lives until the next call.
  RowBatch Select(const RowBatch& batch) {
    if (hidden_.empty() || batch.ids.empty()) return batch;
    const size_t floats = batch.rows.size() / batch.ids.size();
    ids_.clear();
    rows_.clear();
    touched_.clear();
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      if (hidden_.contains(batch.ids[i])) continue;
      ids_.push_back(batch.ids[i]);
      const auto row = batch.rows.subspan(i * floats, floats);
      rows_.insert(rows_.end(), row.begin(), row.end());
      if (!batch.touched.empty()) touched_.push_back(batch.touched[i]);
    }
    return {.updates = batch.updates,
            .ids = ids_,
            .rows = rows_,
            .touched = touched_};
  }

 private:
  absl::flat_hash_set<uint64_t> hidden_;
  std::vector<uint64_t> ids_;
  std::vector<float> rows_;
  std::vector<int64_t> touched_;
};

bool IsBefore(const ShardIndex::Extent& a, const ShardIndex::Extent& b) {
  return std::tie(a.key.array_prefix, a.key.first) <
         std::tie(b.key.array_prefix, b.key.first);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const ShardChain>> ShardChain::Open(
    const std::string& directory, const durable::CheckpointManifest& manifest,
    const FileChain& chain, OpenFile open) {
  std::vector<File> files;
  for (int i = chain.first; i < chain.first + chain.count; ++i) {
    const durable::CheckpointFile& file = manifest.file(i);
    ASSIGN_OR_RETURN(auto opened, open(file));
    files.push_back({file.name(), std::move(opened)});
  }
  std::unique_ptr<ShardChain> opened(new ShardChain(std::move(files)));
  if (opened->files_[0].file->base().has_value()) {
    return absl::DataLossError(
        absl::StrCat(ListedPath(directory, opened->files_[0].name),
                     ": is an increment, but the manifest lists it as whole"));
  }
  const ShardIndex& whole = opened->files_[0].file->index();
  for (const ShardIndex::Extent& extent : whole.extents) {
    opened->pieces_.push_back({&extent, opened->files_[0].file.get()});
  }
  for (int i = 1; i < chain.count; ++i) {
    RETURN_IF_ERROR(
        opened->CheckFollows(directory, i, manifest.file(chain.first + i - 1)));
    RETURN_IF_ERROR(opened->Overlay(directory, i));
  }
  return opened;
}

absl::Status ShardChain::CheckFollows(
    const std::string& directory, size_t i,
    const durable::CheckpointFile& before) const {
  const ShardFile& file = *files_[i].file;
  const std::string path = ListedPath(directory, files_[i].name);
  if (!file.base().has_value()) {
    return absl::DataLossError(absl::StrCat(
        path, ": is a whole file, but the manifest lists it as increment ", i));
  }
  if (file.base()->bytes != before.bytes() ||
      file.base()->crc32c != before.crc32c()) {
    return absl::DataLossError(
        absl::StrCat(path, ": is an increment to another file than ",
                     before.name(), ", which the manifest lists before it"));
  }
  if (file.index().writer != writer()) {
    return absl::DataLossError(absl::StrCat(
        path, ": was written by another shard than ", files_[0].name));
  }
  return absl::OkStatus();
}

absl::Status ShardChain::Overlay(const std::string& directory, size_t i) {
  for (const ShardIndex::Extent& extent : files_[i].file->index().extents) {
    const auto older = std::lower_bound(
        pieces_.begin(), pieces_.end(), extent,
        [](const Piece& piece, const ShardIndex::Extent& sought) {
          return IsBefore(*piece.extent, sought);
        });
    if (older == pieces_.end() || IsBefore(extent, *older->extent) ||
        older->extent->count != extent.count) {
      return absl::DataLossError(absl::StrCat(
          ListedPath(directory, files_[i].name), ": has ", extent.count,
          " elements from ", extent.key.first, " on of array \"",
          absl::CHexEscape(extent.key.array_prefix),
          "\", which are no entry of ", files_[0].name));
    }
    *older = {&extent, files_[i].file.get()};
  }
  return absl::OkStatus();
}

absl::Status ShardChain::ReadRows(const std::string& prefix, RowVisit visit,
                                  size_t first_file) const {
  return ReadRows(
      prefix, visit,
      [](absl::Span<const uint64_t>) { return absl::OkStatus(); }, first_file);
}

absl::Status ShardChain::ReadRows(const std::string& prefix, RowVisit visit,
                                  RemovedVisit removed,
                                  size_t first_file) const {
  OlderRows older;
  for (size_t i = files_.size(); i-- > first_file;) {
    const ShardFile& file = *files_[i].file;
    std::vector<uint64_t> gone;
    if (i > 0) {
      RETURN_IF_ERROR(
          file.ReadRemoved(prefix, [&](absl::Span<const uint64_t> some) {
            older.AddVisible(some, gone);
            return absl::OkStatus();
          }));
    }
    // The ids are not needed if nothing older is read.
    const bool takes_ids = i > first_file || !gone.empty();
    std::vector<uint64_t> ids;
    for (const ShardIndex::Table& table : file.index().tables) {
      if (table.prefix != prefix) continue;
      RETURN_IF_ERROR(file.ReadRows(table, [&](const RowBatch& batch) {
        if (takes_ids)
          ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
        return visit(older.Select(batch));
      }));
    }
    older.Hide(ids);
    std::vector<uint64_t> without_row;
    older.AddVisible(gone, without_row);
    if (without_row.empty()) continue;
    RETURN_IF_ERROR(removed(without_row));
    older.Hide(without_row);
  }
  return absl::OkStatus();
}

absl::Status ShardChain::Verify() const {
  for (const File& file : files_) RETURN_IF_ERROR(file.file->Verify());
  return absl::OkStatus();
}

uint64_t ShardChain::bytes_read() const {
  uint64_t bytes = 0;
  for (const File& file : files_) bytes += file.file->bytes_read();
  return bytes;
}

}  // namespace parasol

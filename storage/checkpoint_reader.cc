#include "storage/checkpoint_reader.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/checkpoint_manifest.h"
#include "storage/shard_file.h"
#include "storage/shard_key.h"

namespace parasol {
namespace {

// How often a checkpoint may be replaced while it is being opened.
constexpr int kMaxAttempts = 5;

class ShardedCheckpointReader : public CheckpointReader {
 public:
  explicit ShardedCheckpointReader(durable::CheckpointManifest manifest)
      : manifest_(std::move(manifest)) {}

  absl::Status OpenFiles(const std::string& directory) {
    for (const durable::CheckpointFile& file : manifest_.file()) {
      ASSIGN_OR_RETURN(std::unique_ptr<const ShardFile> shard,
                       ShardFile::Open(directory, file));
      for (const ShardFile::Extent& extent : shard->extents()) {
        arrays_[extent.key.array_prefix].push_back({&extent, shard.get()});
      }
      RETURN_IF_ERROR(CheckTables(*shard)) << directory << "/" << file.name();
      files_.push_back(std::move(shard));
    }
    return SortPieces(directory);
  }

  const durable::CheckpointManifest& manifest() const override {
    return manifest_;
  }

  absl::StatusOr<int64_t> ReadElements(absl::string_view variable, int array,
                                       int64_t first,
                                       absl::Span<float> out) const override {
    const auto pieces = arrays_.find(ArrayPrefix(variable, array));
    if (pieces == arrays_.end()) return Hole(variable, array, first);
    auto piece = std::upper_bound(
        pieces->second.begin(), pieces->second.end(), first,
        [](int64_t element, const Piece& p) { return element < p.end(); });
    int64_t updates = 0;
    while (!out.empty()) {
      if (piece == pieces->second.end() || first < piece->first()) {
        return Hole(variable, array, first);
      }
      const size_t count = std::min<size_t>(out.size(), piece->end() - first);
      RETURN_IF_ERROR(
          piece->file->Read(*piece->extent, first, out.first(count)));
      updates = std::max(updates, piece->extent->updates);
      out.remove_prefix(count);
      first += count;
      ++piece;
    }
    return updates;
  }

  absl::Status ReadRows(absl::string_view table,
                        RowVisit visit) const override {
    const std::string prefix = TablePrefix(table);
    if (FindTable(prefix) == nullptr) {
      return absl::NotFoundError(absl::StrCat("checkpoint of step ",
                                              manifest_.global_step(),
                                              ": has no table ", table));
    }
    for (const auto& file : files_) {
      for (const ShardFile::Table& rows : file->tables()) {
        if (rows.prefix != prefix) continue;
        RETURN_IF_ERROR(file->ReadRows(rows, visit));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<DedupEntry>> ReadDedup(
      uint32_t shard, uint32_t num_shards) const override {
    std::vector<DedupEntry> entries;
    for (const auto& file : files_) {
      for (const ShardFile::Dedup& dedup : file->dedup()) {
        if (dedup.key.shard == shard && dedup.key.num_shards == num_shards) {
          entries.push_back({dedup.key.worker_incarnation, dedup.window});
        }
      }
    }
    std::sort(entries.begin(), entries.end(),
              [](const DedupEntry& a, const DedupEntry& b) {
                return a.worker_incarnation < b.worker_incarnation;
              });
    return entries;
  }

 private:
  // Elements [first(), end()) of an array, and the file that has them.
  struct Piece {
    const ShardFile::Extent* extent;
    const ShardFile* file;

    int64_t first() const { return extent->key.first; }
    int64_t end() const { return first() + extent->count; }
  };

  const durable::CheckpointTable* FindTable(absl::string_view prefix) const {
    for (const durable::CheckpointTable& table : manifest_.table()) {
      if (TablePrefix(table.name()) == prefix) return &table;
    }
    return nullptr;
  }

  // The manifest says how large rows are.
  absl::Status CheckTables(const ShardFile& file) const {
    for (const ShardFile::Table& rows : file.tables()) {
      const durable::CheckpointTable* table = FindTable(rows.prefix);
      if (table == nullptr) {
        return absl::DataLossError(
            absl::StrCat("has rows of a table that the manifest lacks: ",
                         absl::CHexEscape(rows.prefix)));
      }
      const uint64_t floats =
          uint64_t{table->width()} * (1 + table->slot_size());
      if (rows.floats > 0 && rows.floats != floats) {
        return absl::DataLossError(
            absl::StrCat("has rows of ", rows.floats, " float32 of table ",
                         table->name(), "; the manifest says ", floats));
      }
    }
    return absl::OkStatus();
  }

  absl::Status SortPieces(const std::string& directory) {
    for (auto& [prefix, pieces] : arrays_) {
      std::sort(
          pieces.begin(), pieces.end(),
          [](const Piece& a, const Piece& b) { return a.first() < b.first(); });
      for (size_t i = 1; i < pieces.size(); ++i) {
        if (pieces[i].first() < pieces[i - 1].end()) {
          return absl::DataLossError(absl::StrCat(
              directory, ": element ", pieces[i].first(), " of array \"",
              absl::CHexEscape(prefix), "\" is in its files twice"));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Hole(absl::string_view variable, int array,
                    int64_t first) const {
    return absl::NotFoundError(absl::StrCat(
        "checkpoint of step ", manifest_.global_step(), ": has no element ",
        first, " of array ", array, " of ", variable));
  }

  const durable::CheckpointManifest manifest_;
  std::vector<std::unique_ptr<const ShardFile>> files_;
  // Pieces of each array, ascending; the key is ArrayPrefix().
  std::map<std::string, std::vector<Piece>> arrays_;
};

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenVerified(
    const std::string& directory, absl::string_view manifest_bytes) {
  ASSIGN_OR_RETURN(durable::CheckpointManifest manifest,
                   DecodeManifestIn(directory, manifest_bytes));
  auto reader = std::make_unique<ShardedCheckpointReader>(std::move(manifest));
  RETURN_IF_ERROR(reader->OpenFiles(directory));
  return reader;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    const std::string& directory) {
  ASSIGN_OR_RETURN(std::string manifest, ReadManifestBytes(directory));
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    absl::StatusOr<std::unique_ptr<CheckpointReader>> reader =
        OpenVerified(directory, manifest);
    if (reader.ok()) return reader;
    // It may have been removed or replaced under our eyes, which is no damage.
    ASSIGN_OR_RETURN(std::string manifest_now, ReadManifestBytes(directory));
    if (manifest_now == manifest) return reader;
    manifest = std::move(manifest_now);
  }
  return absl::UnavailableError(
      absl::StrCat(directory, ": was replaced ", kMaxAttempts,
                   " times while it was being opened"));
}

}  // namespace parasol

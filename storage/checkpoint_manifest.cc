#include "storage/checkpoint_manifest.h"

#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "storage/checked_message.h"
#include "storage/checkpoint_name.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr absl::string_view kManifestMagic = "PARASOLM";

// The version of a checkpoint without increments.
constexpr uint32_t kWholeFormatVersion = 2;
// The version of a checkpoint with increments, of tables without bounds.
constexpr uint32_t kIncrementFormatVersion = 3;
// The version of a checkpoint of tables with bounds.
constexpr uint32_t kBoundsFormatVersion = 4;
// The version of a checkpoint of tables some of whose slots have another width
// than their values.
constexpr uint32_t kSlotWidthFormatVersion = 5;
// The version of a checkpoint that lists files of other directories.
constexpr uint32_t kDirectoriesFormatVersion = 5;

bool HasIncrements(const durable::CheckpointManifest& manifest) {
  return std::any_of(
      manifest.file().begin(), manifest.file().end(),
      [](const durable::CheckpointFile& file) { return file.increment() > 0; });
}

bool HasSlotWidths(const durable::CheckpointManifest& manifest) {
  return std::any_of(manifest.table().begin(), manifest.table().end(),
                     [](const durable::CheckpointTable& table) {
                       return table.slot_width_size() > 0;
                     });
}

// Checks that each slot of a table that says its slots' widths has one.
absl::Status CheckSlotWidths(const durable::CheckpointManifest& manifest) {
  for (const durable::CheckpointTable& table : manifest.table()) {
    if (table.slot_width_size() == 0) continue;
    if (table.slot_width_size() != table.slot_size()) {
      return absl::DataLossError(
          absl::StrCat("its table \"", absl::CHexEscape(table.name()),
                       "\" has ", table.slot_size(), " slots, and widths of ",
                       table.slot_width_size()));
    }
    for (const uint32_t width : table.slot_width()) {
      if (width == table.width() || width == 1) continue;
      return absl::DataLossError(absl::StrCat(
          "its table \"", absl::CHexEscape(table.name()),
          "\" has a slot of width ", width, ", not ", table.width(), " or 1"));
    }
  }
  return absl::OkStatus();
}

// Returns true if a file of the checkpoint of `step` can have the name. What it
// continues was written before it.
bool IsListable(absl::string_view name, int64_t step) {
  const std::optional<ListedName> listed = ParseListedName(name);
  return listed.has_value() && listed->file != kManifestName &&
         listed->step.value_or(-1) < step;
}

// Returns the version of the newest of what the manifest has.
uint32_t NeededVersion(const durable::CheckpointManifest& manifest) {
  if (ListsOtherDirectories(manifest)) return kDirectoriesFormatVersion;
  return HasIncrements(manifest) ? kIncrementFormatVersion
                                 : kOldestFormatVersion;
}

}  // namespace

uint32_t FormatVersionFor(const durable::CheckpointManifest& manifest) {
  uint32_t version = std::max(kWholeFormatVersion, NeededVersion(manifest));
  if (HasSlotWidths(manifest)) {
    version = std::max(version, kSlotWidthFormatVersion);
  }
  for (const job::SparseTable& table : manifest.job().model().sparse_table()) {
    if (table.has_admission() || table.has_eviction()) {
      version = std::max(version, kBoundsFormatVersion);
    }
  }
  return version;
}

uint32_t SlotWidthOf(const durable::CheckpointTable& table, int slot) {
  return slot < table.slot_width_size() ? table.slot_width(slot)
                                        : table.width();
}

uint64_t FloatsOfRow(const durable::CheckpointTable& table) {
  uint64_t floats = table.width();
  for (int slot = 0; slot < table.slot_size(); ++slot) {
    floats += SlotWidthOf(table, slot);
  }
  return floats;
}

std::vector<FileChain> ChainsOf(const durable::CheckpointManifest& manifest) {
  std::vector<FileChain> chains;
  for (int i = 0; i < manifest.file_size(); ++i) {
    if (manifest.file(i).increment() == 0) {
      chains.push_back({.first = i});
    } else {
      ++chains.back().count;
    }
  }
  return chains;
}

bool IsSameFile(const durable::CheckpointFile& a,
                const durable::CheckpointFile& b) {
  return a.bytes() == b.bytes() && a.crc32c() == b.crc32c() &&
         FileNameOf(a.name()) == FileNameOf(b.name());
}

bool ListsOtherDirectories(const durable::CheckpointManifest& manifest) {
  return std::any_of(manifest.file().begin(), manifest.file().end(),
                     [](const durable::CheckpointFile& file) {
                       return file.name().find('/') != std::string::npos;
                     });
}

std::optional<std::vector<int>> FilesInCommon(
    const durable::CheckpointManifest& older,
    const durable::CheckpointManifest& newer) {
  const std::vector<FileChain> before = ChainsOf(older), now = ChainsOf(newer);
  if (older.run_id() != newer.run_id() || before.size() != now.size()) {
    return std::nullopt;
  }
  std::vector<int> common;
  for (size_t chain = 0; chain < now.size(); ++chain) {
    if (before[chain].count > now[chain].count) return std::nullopt;
    for (int i = 0; i < before[chain].count; ++i) {
      const durable::CheckpointFile& a = older.file(before[chain].first + i);
      const durable::CheckpointFile& b = newer.file(now[chain].first + i);
      if (!IsSameFile(a, b)) return std::nullopt;
    }
    common.push_back(before[chain].count);
  }
  return common;
}

absl::Status CheckFileNames(const durable::CheckpointManifest& manifest) {
  std::set<std::string> names;
  int64_t next_increment = 0;  // of the shard whose files these are
  for (const durable::CheckpointFile& file : manifest.file()) {
    if (!IsListable(file.name(), manifest.global_step())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "manifest: '", file.name(),
          "' is not a plain file name, nor a file of an earlier checkpoint"));
    }
    if (!names.insert(FileNameOf(file.name())).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("manifest: lists '", file.name(), "' twice"));
    }
    if (file.increment() > 0 && file.increment() != next_increment) {
      return absl::InvalidArgumentError(absl::StrCat(
          "manifest: '", file.name(), "' is increment ", file.increment(),
          next_increment == 0
              ? ", and no whole file precedes it"
              : absl::StrCat(", where number ", next_increment, " belongs")));
    }
    next_increment = int64_t{file.increment()} + 1;
  }
  return absl::OkStatus();
}

std::string EncodeManifest(const durable::CheckpointManifest& manifest) {
  return EncodeChecked(kManifestMagic, manifest.SerializeAsString());
}

absl::StatusOr<durable::CheckpointManifest> DecodeManifest(
    absl::string_view bytes) {
  ASSIGN_OR_RETURN(const absl::string_view payload,
                   DecodeChecked(kManifestMagic, bytes));
  durable::CheckpointManifest manifest;
  if (!manifest.ParseFromArray(payload.data(), payload.size())) {
    return absl::DataLossError("its message can't be parsed");
  }
  if (manifest.format_version() < kOldestFormatVersion ||
      manifest.format_version() > kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "its format_version is ", manifest.format_version(),
        "; this program knows ", kOldestFormatVersion, " to ", kFormatVersion));
  }
  if (manifest.format_version() < NeededVersion(manifest)) {
    return absl::DataLossError(absl::StrCat(
        "its format_version is ", manifest.format_version(), ", which has no ",
        ListsOtherDirectories(manifest) ? "files of other directories"
                                        : "increments",
        ", and it lists some"));
  }
  if (manifest.format_version() < kSlotWidthFormatVersion &&
      HasSlotWidths(manifest)) {
    return absl::DataLossError(
        absl::StrCat("its format_version is ", manifest.format_version(),
                     ", which has no widths of slots, and it has some"));
  }
  RETURN_IF_ERROR(CheckSlotWidths(manifest));
  if (const absl::Status names = CheckFileNames(manifest); !names.ok()) {
    return absl::DataLossError(names.message());
  }
  return manifest;
}

absl::StatusOr<std::string> ReadManifestBytes(const std::string& directory) {
  return ReadFile(JoinedPath(directory, kManifestName), kMaxCheckedBytes);
}

absl::StatusOr<durable::CheckpointManifest> DecodeManifestIn(
    const std::string& directory, absl::string_view bytes) {
  ASSIGN_OR_RETURN(durable::CheckpointManifest manifest, DecodeManifest(bytes),
                   _ << JoinedPath(directory, kManifestName));
  RETURN_IF_ERROR(CheckStepOfName(directory, manifest.global_step()));
  return manifest;
}

}  // namespace parasol

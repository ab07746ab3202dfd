#include "tests/fuzz/readers/checkpoint_targets.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "cluster/rpc/library_log.h"
#include "proto/checkpoint.pb.h"
#include "storage/checked_message.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_reader.h"
#include "storage/row_entry.h"
#include "storage/shard_file.h"
#include "storage/shard_index.h"
#include "storage/shard_key.h"
#include "storage/shard_writer.h"
#include "tests/fuzz/readers/input_bytes.h"
#include "tests/fuzz/readers/scratch_folder.h"

namespace parasol {
namespace {

// A variable is read up to here: an index may say more than there is.
constexpr int64_t kMaxElements = 1 << 20;

durable::CheckpointFile FileOf(absl::string_view bytes) {
  durable::CheckpointFile file;
  file.set_name("shard");
  file.set_bytes(bytes.size());
  file.set_crc32c(Crc32cOf(bytes));
  return file;
}

void ReadShard(const ShardFile& shard) {
  for (const ShardIndex::Extent& extent : shard.index().extents) {
    std::vector<float> values(
        std::clamp<int64_t>(extent.count, 0, kMaxElements));
    shard.Read(extent, extent.key.first, absl::MakeSpan(values)).IgnoreError();
  }
  for (const ShardIndex::Table& table : shard.index().tables) {
    shard
        .ReadRows(table,
                  [](const RowBatch& rows) {
                    CHECK(rows.ids.empty() ||
                          rows.rows.size() % rows.ids.size() == 0);
                    return absl::OkStatus();
                  })
        .IgnoreError();
  }
  shard.ReadDedup({.shard = 0, .num_shards = 1}).IgnoreError();
  shard.Verify().IgnoreError();
}

void FeedShard(absl::string_view input) {
  static const ScratchFolder folder;
  folder.Write("shard", input);
  const auto shard = ShardFile::Open(folder.path(), FileOf(input));
  if (shard.ok()) ReadShard(**shard);
}

// The bytes of a whole file, or of an increment to the file `base`.
std::string SomeShard(
    const std::optional<durable::CheckpointFile>& base = std::nullopt) {
  const ScratchFolder folder;
  const auto writer = ShardWriter::Create(folder.path() + "/shard");
  CHECK(writer.ok()) << writer.status();
  (*writer)->SetWriter({.shard = 0, .num_shards = 1});
  if (base.has_value()) (*writer)->SetBase({base->bytes(), base->crc32c()});
  const std::vector<float> values = {1, 2, 3};
  const std::vector<uint64_t> ids = {7, 9};
  const std::vector<float> rows = {1, 2, 3, 4};
  CHECK((*writer)->AddElements("w", 0, 0, 5, values).ok());
  CHECK((*writer)->AddElements("w", 0, 3, 5, values).ok());
  CHECK((*writer)
            ->AddRows("users", {.updates = 5, .ids = ids, .rows = rows})
            .ok());
  CHECK((*writer)->AddDedup(0, 1, {11, "window"}).ok());
  CHECK((*writer)->Finish().ok());
  return folder.Read("shard");
}

// The entries of a shard's file, without the file around them.
void FeedEntries(absl::string_view input) {
  InputBytes bytes(input);
  ShardIndex index;
  for (int count = bytes.Byte(); count > 0; --count) {
    const absl::string_view key = bytes.Counted();
    const absl::string_view value = bytes.Counted();
    ParseElementsKey(key);
    ParseRowsKey(key);
    ParseDedupKey(key);
    if (const auto header = ParseRowsHeader(value); header.has_value()) {
      DecodedRows rows;
      rows.Assign(*header, value);
    }
    if (!index.Add(key, value).ok()) return;
  }
  CHECK(ShardIndex::Decode(index.Encode()).has_value());
  ShardIndex::Decode(bytes.rest());
}

std::vector<std::string> EntrySeeds() {
  std::string rows;
  const std::vector<uint64_t> ids = {7, 9};
  const std::vector<float> values = {1, 2, 3, 4};
  CHECK(EncodeRows({.updates = 5, .ids = ids, .rows = values}, rows));
  const std::string elements = absl::StrCat(std::string(8, '\1'), "12345678");
  ShardIndex index;
  CHECK(index.Add(ElementsKey{ArrayPrefix("w", 0), 0}.Encode(), elements).ok());
  return {absl::StrCat(
      "\2", InputBytes::OfCounted(ElementsKey{ArrayPrefix("w", 0), 0}.Encode()),
      InputBytes::OfCounted(elements),
      InputBytes::OfCounted(RowsKey{TablePrefix("users"), 0}.Encode()),
      InputBytes::OfCounted(rows), index.Encode())};
}

// Reads all of the checkpoint in `directory`, if it opens.
void ReadCheckpoint(const std::string& directory) {
  const auto reader = CheckpointReader::Open(directory);
  if (!reader.ok()) return;
  std::vector<float> values(3);
  for (const durable::CheckpointVariable& variable :
       (*reader)->manifest().variable()) {
    (*reader)
        ->ReadElements(variable.name(), 0, 0, absl::MakeSpan(values))
        .IgnoreError();
  }
  for (const durable::CheckpointTable& table : (*reader)->manifest().table()) {
    (*reader)
        ->ReadRows(table.name(),
                   [](const RowBatch&) { return absl::OkStatus(); })
        .IgnoreError();
  }
  (*reader)->ReadDedup(0, 1).IgnoreError();
  (*reader)->Verify().IgnoreError();
}

// A manifest beside a shard's file that is intact; what the manifest says of
// files is kept, so that the reader opens what it names.
void FeedManifest(absl::string_view input) {
  QuietLibraryLog();
  static const std::string shard = SomeShard();
  static const ScratchFolder folder;
  durable::CheckpointManifest manifest;
  if (!manifest.ParseFromArray(input.data(), input.size())) return;
  const auto decoded = DecodeManifest(EncodeManifest(manifest));
  if (!decoded.ok()) return;
  folder.Clear();
  folder.Write("shard", shard);
  folder.Write("MANIFEST", EncodeManifest(*decoded));
  ReadCheckpoint(folder.path());
}

durable::CheckpointManifest SomeManifest() {
  durable::CheckpointManifest manifest;
  manifest.set_format_version(kFormatVersion);
  manifest.set_run_id("a");
  manifest.set_global_step(5);
  durable::CheckpointVariable& variable = *manifest.add_variable();
  variable.set_name("w");
  variable.add_shape(6);
  durable::CheckpointTable& table = *manifest.add_table();
  table.set_name("users");
  table.set_width(2);
  *manifest.add_file() = FileOf(SomeShard());
  return manifest;
}

// A chain of an intact file and the input.
void FeedIncrement(absl::string_view input) {
  QuietLibraryLog();
  static const std::string shard = SomeShard();
  static const ScratchFolder folder;
  durable::CheckpointManifest manifest = SomeManifest();
  *manifest.add_file() = FileOf(input);
  manifest.mutable_file(1)->set_name("increment");
  manifest.mutable_file(1)->set_increment(1);
  folder.Clear();
  folder.Write("shard", shard);
  folder.Write("increment", input);
  folder.Write("MANIFEST", EncodeManifest(manifest));
  ReadCheckpoint(folder.path());
}

std::vector<std::string> ManifestSeeds() {
  return {SomeManifest().SerializeAsString()};
}

}  // namespace

std::vector<FuzzTarget> CheckpointTargets() {
  return {
      {"manifest_bytes",
       [](absl::string_view input) { DecodeManifest(input).IgnoreError(); },
       [] { return std::vector<std::string>{EncodeManifest({})}; }},
      {"manifest", FeedManifest, ManifestSeeds},
      {"shard_file", FeedShard,
       [] { return std::vector<std::string>{SomeShard()}; }},
      {"increment", FeedIncrement,
       [] { return std::vector<std::string>{SomeShard(FileOf(SomeShard()))}; }},
      {"shard_entries", FeedEntries, EntrySeeds}};
}

}  // namespace parasol

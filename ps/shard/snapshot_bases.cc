#include "ps/shard/snapshot_bases.h"

#include <algorithm>

namespace parasol {
namespace {

bool IsFileOf(const std::optional<SnapshotBases::Base>& base,
              const durable::CheckpointFile& file) {
  return base.has_value() && base->file.name() == file.name() &&
         base->file.bytes() == file.bytes() &&
         base->file.crc32c() == file.crc32c();
}

}  // namespace

const SnapshotBases::Base* SnapshotBases::Find(
    const durable::CheckpointManifest& manifest, const std::string& file_name) {
  const auto file =
      std::find_if(manifest.file().begin(), manifest.file().end(),
                   [&file_name](const durable::CheckpointFile& entry) {
                     return entry.name() == file_name;
                   });
  if (file == manifest.file().end()) return nullptr;
  if (IsFileOf(newest_, *file)) complete_ = newest_;
  return IsFileOf(complete_, *file) ? &*complete_ : nullptr;
}

}  // namespace parasol

#include "coordinator/continued_chains.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "storage/durable_file.h"

namespace parasol {

ContinuedChains::ContinuedChains(std::string path,
                                 durable::CheckpointManifest manifest,
                                 size_t num_shards, int full_every)
    : path_(std::move(path)), manifest_(std::move(manifest)) {
  std::vector<FileChain> chains = ChainsOf(manifest_);
  const bool has_room =
      std::all_of(chains.begin(), chains.end(),
                  [&](const FileChain& c) { return c.count < full_every; });
  if (chains.size() == num_shards && has_room) chains_ = std::move(chains);
}

std::string ContinuedChains::Since(size_t shard) const {
  if (empty()) return "";
  const FileChain& chain = chains_[shard];
  return absl::StrCat(std::filesystem::path(path_).filename().string(), "/",
                      manifest_.file(chain.first + chain.count - 1).name());
}

std::string ContinuedChains::NextName(size_t shard, size_t num_shards) const {
  const std::string stem =
      absl::StrFormat("shard-%05d-of-%05d", shard, num_shards);
  std::string name = absl::StrCat(stem, ".sst");
  if (empty()) return name;
  const FileChain& chain = chains_[shard];
  const auto is_taken = [&] {
    for (int i = 0; i < chain.count; ++i) {
      if (manifest_.file(chain.first + i).name() == name) return true;
    }
    return false;
  };
  for (int number = 1; is_taken(); ++number) {
    name = absl::StrCat(stem, ".", number, ".sst");
  }
  return name;
}

absl::Status ContinuedChains::LinkInto(const std::string& directory,
                                       size_t shard) const {
  const FileChain& chain = chains_[shard];
  for (int i = 0; i < chain.count; ++i) {
    const std::string& name = manifest_.file(chain.first + i).name();
    const absl::Status linked = Link(absl::StrCat(path_, "/", name),
                                     absl::StrCat(directory, "/", name));
    if (linked.ok()) continue;
    UnlinkFrom(directory, shard);
    return linked;
  }
  return absl::OkStatus();
}

void ContinuedChains::UnlinkFrom(const std::string& directory,
                                 size_t shard) const {
  const FileChain& chain = chains_[shard];
  for (int i = 0; i < chain.count; ++i) {
    const std::string path =
        absl::StrCat(directory, "/", manifest_.file(chain.first + i).name());
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error)
      LOG(WARNING) << "can't remove " << path << ": " << error.message();
  }
}

void ContinuedChains::AddTo(durable::CheckpointManifest& manifest, size_t shard,
                            durable::CheckpointFile newest) const {
  const FileChain& chain = chains_[shard];
  for (int i = 0; i < chain.count; ++i) {
    *manifest.add_file() = manifest_.file(chain.first + i);
  }
  newest.set_increment(chain.count);
  *manifest.add_file() = std::move(newest);
}

}  // namespace parasol

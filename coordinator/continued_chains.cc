#include "coordinator/continued_chains.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/uri/uri_path.h"
#include "storage/checkpoint_name.h"
#include "storage/durable_file.h"

namespace parasol {

ContinuedChains::ContinuedChains(std::string path,
                                 durable::CheckpointManifest manifest,
                                 size_t num_shards, int full_every)
    : path_(std::move(path)), manifest_(std::move(manifest)) {
  std::vector<FileChain> chains = ChainsOf(manifest_);
  const bool has_room =
      std::all_of(chains.begin(), chains.end(), [&](const FileChain& c) {
        return c.count < full_every &&
               IsPlainName(manifest_.file(c.first + c.count - 1).name());
      });
  if (chains.size() == num_shards && has_room) chains_ = std::move(chains);
}

bool ContinuedChains::CanBeListedAt(int64_t step) const {
  return !IsUri(path_) || manifest_.global_step() <= step;
}

std::string ContinuedChains::Since(size_t shard) const {
  if (empty()) return "";
  const FileChain& chain = chains_[shard];
  return absl::StrCat(LastName(path_), "/",
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
      const std::string& taken = manifest_.file(chain.first + i).name();
      if (FileNameOf(taken) == name) return true;
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
  if (IsUri(path_)) return absl::OkStatus();
  const FileChain& chain = chains_[shard];
  for (int i = 0; i < chain.count; ++i) {
    const std::string& name = manifest_.file(chain.first + i).name();
    const absl::Status linked =
        Link(ListedPath(path_, name),
             absl::StrCat(directory, "/", FileNameOf(name)));
    if (linked.ok()) continue;
    UnlinkFrom(directory, shard);
    return linked;
  }
  return absl::OkStatus();
}

void ContinuedChains::UnlinkFrom(const std::string& directory,
                                 size_t shard) const {
  if (IsUri(path_)) return;
  const FileChain& chain = chains_[shard];
  for (int i = 0; i < chain.count; ++i) {
    const std::string path = absl::StrCat(
        directory, "/", FileNameOf(manifest_.file(chain.first + i).name()));
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error)
      LOG(WARNING) << "can't remove " << path << ": " << error.message();
  }
}

std::string ContinuedChains::NameFrom(int64_t step,
                                      const std::string& listed) const {
  std::string name = FileNameOf(listed);
  if (!IsUri(path_)) return name;
  const auto of = ParseListedName(listed);
  const int64_t folder =
      of.has_value() && of->step ? *of->step : manifest_.global_step();
  return folder == step ? name : JoinedPath(CheckpointName(folder), name);
}

void ContinuedChains::AddTo(durable::CheckpointManifest& manifest, size_t shard,
                            durable::CheckpointFile newest) const {
  const FileChain& chain = chains_[shard];
  for (int i = 0; i < chain.count; ++i) {
    durable::CheckpointFile& file = *manifest.add_file();
    file = manifest_.file(chain.first + i);
    file.set_name(NameFrom(manifest.global_step(), file.name()));
  }
  newest.set_increment(chain.count);
  *manifest.add_file() = std::move(newest);
}

}  // namespace parasol

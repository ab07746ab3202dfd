#include "ml/input/object/remote_file.h"

#include <algorithm>

#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr uint64_t kBlockBytes = 256 << 10;
constexpr size_t kMostBlocks = 32;

}  // namespace

absl::Status RemoteFile::ReadChecked(uint64_t offset,
                                     absl::Span<char> out) const {
  RETURN_IF_ERROR(object_->Read(offset, out));
  // What was read may be of another version.
  return object_->CheckIsSame();
}

absl::StatusOr<const RemoteFile::Block*> RemoteFile::FindBlock(uint64_t begin) {
  for (const Block& block : blocks_) {
    if (block.begin == begin) return &block;
  }
  Block block = {.begin = begin, .bytes = {}};
  block.bytes.resize(std::min(kBlockBytes, size() - begin));
  RETURN_IF_ERROR(ReadChecked(begin, absl::MakeSpan(block.bytes)));
  if (blocks_.size() == kMostBlocks) blocks_.pop_front();
  blocks_.push_back(std::move(block));
  return &blocks_.back();
}

absl::Status RemoteFile::Read(uint64_t offset, absl::Span<char> out) {
  // One large answer is faster than many.
  if (out.size() >= kBlockBytes) return ReadChecked(offset, out);
  const absl::MutexLock lock(&mu_);
  while (!out.empty()) {
    const uint64_t begin = offset / kBlockBytes * kBlockBytes;
    ASSIGN_OR_RETURN(const Block* const block, FindBlock(begin));
    const size_t size =
        std::min<uint64_t>(out.size(), begin + block->bytes.size() - offset);
    std::copy_n(block->bytes.data() + (offset - begin), size, out.data());
    out.remove_prefix(size);
    offset += size;
  }
  return absl::OkStatus();
}

}  // namespace parasol

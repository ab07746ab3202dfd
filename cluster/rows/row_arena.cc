#include "cluster/rows/row_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/log.h"

namespace parasol {
namespace {

constexpr size_t kHugePage = 2 << 20;
constexpr size_t kAlignment = 64;
constexpr size_t kMappedAlone = RowArena::kRegionBytes / 8;

// A freed piece is cut up for pieces that are so many times smaller: the rest
// of it is not lost on a few.
constexpr size_t kCutUp = 4;

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Aligned to a huge page: the kernel uses them for whole ones only.
std::byte* Map(size_t bytes) {
  const size_t mapped = bytes + kHugePage;
  void* const memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED)
      << "no memory for " << bytes << " bytes of rows: " << strerror(errno);
  auto* const begin = static_cast<std::byte*>(memory);
  const size_t before = RoundUp(reinterpret_cast<uintptr_t>(begin), kHugePage) -
                        reinterpret_cast<uintptr_t>(begin);
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, mapped - before - bytes);
  // Refused where the kernel has no huge pages: slower, not wrong.
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

}  // namespace

RowArena::~RowArena() {
  for (std::byte* region : regions_) munmap(region, kRegionBytes);
}

void* RowArena::Allocate(size_t bytes) {
  bytes = RoundUp(bytes, kAlignment);
  if (bytes >= kMappedAlone) {
    bytes = RoundUp(bytes, kHugePage);
    allocated_.fetch_add(bytes, std::memory_order_relaxed);
    return Map(bytes);
  }
  absl::MutexLock lock(&mu_);
  std::vector<void*>& freed = freed_[bytes];
  if (freed.empty()) return Carve(bytes);
  void* const memory = freed.back();
  freed.pop_back();
  return memory;
}

void RowArena::Free(void* memory, size_t bytes) {
  bytes = RoundUp(bytes, kAlignment);
  if (bytes >= kMappedAlone) {
    bytes = RoundUp(bytes, kHugePage);
    munmap(memory, bytes);
    allocated_.fetch_sub(bytes, std::memory_order_relaxed);
    return;
  }
  absl::MutexLock lock(&mu_);
  freed_[bytes].push_back(memory);
}

void* RowArena::Carve(size_t bytes) {
  if (rest_bytes_ < bytes) FindRest(bytes);
  void* const memory = rest_;
  rest_ += bytes;
  rest_bytes_ -= bytes;
  if (rest_is_fresh_) allocated_.fetch_add(bytes, std::memory_order_relaxed);
  return memory;
}

// What an index has left behind when it grew serves many blocks.
void RowArena::FindRest(size_t bytes) {
  const auto largest =
      std::find_if(freed_.rbegin(), freed_.rend(),
                   [](const auto& pieces) { return !pieces.second.empty(); });
  if (largest != freed_.rend() && largest->first >= kCutUp * bytes) {
    rest_ = static_cast<std::byte*>(largest->second.back());
    rest_bytes_ = largest->first;
    rest_is_fresh_ = false;
    largest->second.pop_back();
    return;
  }
  regions_.push_back(Map(kRegionBytes));
  rest_ = regions_.back();
  rest_bytes_ = kRegionBytes;
  rest_is_fresh_ = true;
}

}  // namespace parasol

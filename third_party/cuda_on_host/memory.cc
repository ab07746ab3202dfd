#include "third_party/cuda_on_host/memory.h"

#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes)
#endif

#include <cstring>
#include <deque>
#include <map>
#include <vector>

namespace cuda_on_host {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 256;  // as cudaMalloc()'s
constexpr size_t kDeviceBytes = size_t{16} << 30;
constexpr size_t kMaxQuarantined = 4096;

struct Pages {
  char* begin = nullptr;
  size_t bytes = 0;
};

struct Heap {
  std::map<const char*, Allocation> allocations;  // by their beginning
  std::map<int, size_t> used;                     // bytes, by device
  std::deque<Pages> quarantine;
  uint64_t frees = 0;
  std::map<const char*, Pages> pages;  // of the allocations
};

Heap& TheHeap() {
  static auto* const heap = new Heap;
  return *heap;
}

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

void Quarantine(Heap& heap, const Pages& pages) {
  ASAN_UNPOISON_MEMORY_REGION(pages.begin, pages.bytes);
  // Gives the memory back and keeps the addresses.
  madvise(pages.begin, pages.bytes, MADV_DONTNEED);
  mprotect(pages.begin, pages.bytes, PROT_NONE);
  heap.quarantine.push_back(pages);
  if (heap.quarantine.size() <= kMaxQuarantined) return;
  munmap(heap.quarantine.front().begin, heap.quarantine.front().bytes);
  heap.quarantine.pop_front();
}

}  // namespace

void* Allocate(size_t bytes, int device) {
  Heap& heap = TheHeap();
  size_t& used = heap.used[device];
  if (bytes > kDeviceBytes || used + bytes > kDeviceBytes) return nullptr;
  const size_t padded = RoundUp(bytes, kAlignment);
  const size_t whole = RoundUp(padded, kPage);
  void* const mapped = mmap(nullptr, whole + kPage, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(mapped);
  mprotect(begin + whole, kPage, PROT_NONE);
  // At the end of its pages, so that what lies behind cannot be touched.
  char* const data = begin + whole - padded;
  std::memset(begin, 0xff, whole);
  ASAN_POISON_MEMORY_REGION(begin, data - begin);
  ASAN_POISON_MEMORY_REGION(data + bytes, begin + whole - data - bytes);
  used += bytes;
  heap.pages[data] = {begin, whole + kPage};
  Allocation& allocation = heap.allocations[data];
  allocation.data = data;
  allocation.bytes = bytes;
  allocation.device = device;
  return data;
}

bool Free(void* data, bool pinned) {
  Heap& heap = TheHeap();
  const auto found = heap.allocations.find(static_cast<char*>(data));
  if (found == heap.allocations.end()) return false;
  if ((found->second.device == kPinned) != pinned) return false;
  ++heap.frees;
  heap.used[found->second.device] -= found->second.bytes;
  heap.allocations.erase(found);
  const auto pages = heap.pages.find(static_cast<char*>(data));
  Quarantine(heap, pages->second);
  heap.pages.erase(pages);
  return true;
}

uint64_t Frees() { return TheHeap().frees; }

Allocation* FindAllocation(const void* address) {
  Heap& heap = TheHeap();
  const char* const at = static_cast<const char*>(address);
  auto next = heap.allocations.upper_bound(at);
  if (next == heap.allocations.begin()) return nullptr;
  Allocation& allocation = (--next)->second;
  return at < allocation.data + allocation.bytes ? &allocation : nullptr;
}

bool IsInside(const void* address, size_t bytes) {
  const Allocation* const allocation = FindAllocation(address);
  return allocation != nullptr && static_cast<const char*>(address) + bytes <=
                                      allocation->data + allocation->bytes;
}

}  // namespace cuda_on_host

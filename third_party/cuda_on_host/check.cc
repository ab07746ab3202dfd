#include "third_party/cuda_on_host/check.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "third_party/cuda_on_host/memory.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

// The variables of the executable, where static __shared__ arrays are, and all
// before them, which is constant.
extern char __executable_start[];
extern char __data_start[];
extern char _end[];

namespace cuda_on_host {

constinit thread_local bool checks_grid = false;

namespace {

constexpr size_t kWord = 4;
// Races in larger arrays are not looked for: four bytes are kept for each.
constexpr size_t kMaxWatched = size_t{64} << 20;
constexpr uint64_t kAnyBlock = (1u << 18) - 1;
constexpr uint64_t kAnyThread = (1u << 10) - 1 + 1;

// Who accessed a word last.
struct Tag {
  uint64_t grid : 22 = 0;
  uint64_t block : 18 = 0;
  uint64_t phase : 12 = 0;
  uint64_t thread : 11 = 0;
  uint64_t atomic : 1 = 0;
};
static_assert(sizeof(Tag) == sizeof(uint64_t));

struct Word {
  Tag write, read;
};

// The grid that runs, counting from 1; its block; and the number of barriers
// that the block has passed.
Tag present;

Tag Present(Access access) {
  Tag tag = present;
  tag.thread = runner.thread;
  tag.atomic = access == Access::kAtomic;
  return tag;
}

// Returns true if no barrier lies between `earlier` and `now`, which are not of
// one thread.
bool IsUnordered(const Tag& earlier, const Tag& now) {
  if (earlier.grid != now.grid) [[likely]]
    return false;
  if (earlier.block != now.block) return true;
  return earlier.thread != now.thread && earlier.phase == now.phase;
}

bool IsRace(const Tag& earlier, const Tag& now) {
  return IsUnordered(earlier, now) && !(earlier.atomic && now.atomic);
}

// Keeps of a word's readers as many as one tag can.
void AddReader(Tag& reader, const Tag& now) {
  const Tag earlier = reader;
  reader = now;
  if (!IsUnordered(earlier, now)) return;
  reader.thread = kAnyThread;
  if (earlier.block != now.block) reader.block = kAnyBlock;
}

[[noreturn]] void DieOfRace(const void* address, const Tag& a, const Tag& b) {
  const auto words = [](const Tag& tag) {
    return "thread " + std::to_string(tag.thread) + " of block " +
           std::to_string(tag.block);
  };
  Die("a race: " + words(a) + " and " + words(b) +
      " touch one word of memory, one of them writes it, and no barrier lies "
      "between (address " +
      std::to_string(reinterpret_cast<uintptr_t>(address)) + ")");
}

void CheckRace(const void* address, Word& word, const Tag& now, Access access) {
  if (IsRace(word.write, now)) DieOfRace(address, word.write, now);
  if (access == Access::kRead) {
    AddReader(word.read, now);
    return;
  }
  if (IsRace(word.read, now)) DieOfRace(address, word.read, now);
  word.write = now;
}

// Two functions for what is kept of each word of an allocation, or of the
// executable's variables.
std::vector<Word>& WordsOf(Allocation& allocation) {
  if (allocation.shadow == nullptr) {
    allocation.shadow = std::make_shared<std::vector<Word>>(
        (allocation.bytes + kWord - 1) / kWord);
  }
  return *static_cast<std::vector<Word>*>(allocation.shadow.get());
}

std::vector<Word>& WordsOfVariables() {
  static auto* const words =
      new std::vector<Word>((_end - __data_start) / kWord + 1);
  return *words;
}

void CheckWords(std::vector<Word>& words, const char* begin,
                const char* address, size_t bytes, Access access) {
  // Values smaller than a word share it with others.
  if (bytes < kWord) return;
  const Tag now = Present(access);
  const size_t end = (address + bytes - begin + kWord - 1) / kWord;
  for (size_t i = (address - begin) / kWord; i < end; ++i) {
    CheckRace(begin + i * kWord, words[i], now, access);
  }
}

void CheckVariable(const char* address, size_t bytes, Access access) {
  std::vector<Word>& words = WordsOfVariables();
  Word& first = words[(address - __data_start) / kWord];
  const Tag now = Present(access);
  const auto is_own = [now](const Tag& tag) {
    return tag.grid == now.grid && tag.block == now.block;
  };
  if (access == Access::kRead && !is_own(first.write)) {
    Die("a thread reads shared memory that its block has not written");
  }
  // Each block has shared memory of its own, one after the other in one place.
  const size_t end = (address + bytes - __data_start + kWord - 1) / kWord;
  for (Word* word = &first; word < words.data() + end; ++word) {
    if (!is_own(word->write)) word->write = Tag();
    if (!is_own(word->read)) word->read = Tag();
  }
  CheckWords(words, __data_start, address, bytes, access);
}

// Returns the allocation of `address`, mostly without a search. Allocations
// have pages of their own.
Allocation* Find(const char* address) {
  struct Known {
    uintptr_t page = 0;
    uint64_t frees = 0;
    Allocation* allocation = nullptr;
  };
  constexpr int kPageBits = 12;
  static Known cache[256];
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) >> kPageBits;
  Known& known = cache[page % 256];
  if (known.page != page || known.frees != Frees()) {
    Allocation* const found = FindAllocation(address);
    if (found == nullptr) return nullptr;
    known = {page, Frees(), found};
  }
  return known.allocation;
}

void CheckArray(Allocation& allocation, const char* address, size_t bytes,
                Access access) {
  if (address < allocation.data ||
      address + bytes > allocation.data + allocation.bytes) {
    Die("a thread reads or writes outside of an array");
  }
  if (allocation.device != runner.device && allocation.device != kPinned &&
      !IsPeer(runner.device, allocation.device)) {
    Die("a thread touches memory of a device that is no peer of its own");
  }
  if (allocation.bytes > kMaxWatched) return;
  CheckWords(WordsOf(allocation), allocation.data, address, bytes, access);
}

// Returns true for threadIdx and the like.
bool IsPosition(const char* address) {
  for (const void* one : {static_cast<const void*>(&threadIdx),
                          static_cast<const void*>(&blockIdx),
                          static_cast<const void*>(&blockDim),
                          static_cast<const void*>(&gridDim)}) {
    const char* const begin = static_cast<const char*>(one);
    if (address >= begin && address < begin + sizeof(uint3)) return true;
  }
  return false;
}

// Read-only data of the executable: tables and the kernels' own constants.
bool IsConstant(const char* address) {
  return address >= __executable_start && address < __data_start;
}

}  // namespace

void StartGrid() {
  ++present.grid;
  checks_grid = ChecksAccesses();
}

void StartBlock() {
  present.block = runner.block % kAnyBlock;
  present.phase = 0;
}

void PassBarrier() { ++present.phase; }

void EndGrid() { checks_grid = false; }

void CheckMemory(const char* address, size_t bytes, Access access) {
  const Unchecked unchecked;
  if (address >= __data_start && address < _end) {
    if (!IsPosition(address)) CheckVariable(address, bytes, access);
    return;
  }
  if (Allocation* const allocation = Find(address)) {
    CheckArray(*allocation, address, bytes, access);
    return;
  }
  if (access == Access::kRead && IsConstant(address)) return;
  Die(access == Access::kRead
          ? "a thread reads memory that is not the device's"
          : "a thread writes memory that is not the device's");
}

}  // namespace cuda_on_host

#include "cluster/collective/piece_lane.h"

#include <cstring>

#include "absl/status/status.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr size_t kLanePage = 4096;
constexpr size_t kLaneBytes = kLanePage + PieceLane::kRingBytes;

}  // namespace

absl::StatusOr<std::unique_ptr<PieceLane>> PieceLane::Create() {
  static_assert(sizeof(Words) <= kLanePage);
  ASSIGN_OR_RETURN(std::shared_ptr<SharedMemory> memory,
                   SharedMemory::Create(kLaneBytes));
  if (!memory->Populate(0, kLaneBytes)) {
    return absl::UnavailableError("shared memory: the system has none left");
  }
  return std::unique_ptr<PieceLane>(new PieceLane(std::move(memory)));
}

absl::Status PieceLane::Open(const std::string& offer) {
  ASSIGN_OR_RETURN(other_, SharedMemory::Open(offer, kLaneBytes));
  return absl::OkStatus();
}

std::byte* PieceLane::RingOf(const SharedMemory& memory) {
  return memory.data() + kLanePage;
}

uint64_t PieceLane::BeginOf(uint64_t position, size_t bytes) {
  const size_t left = kRingBytes - position % kRingBytes;
  return bytes <= left ? position : position + left;
}

bool PieceLane::Put(absl::Span<const std::byte> piece) {
  CHECK(is_open() && Suits(piece.size()));
  const uint64_t begin = BeginOf(put_, piece.size());
  const uint64_t end = begin + piece.size();
  const auto has_room = [&] {
    const uint64_t taken = WordsOf(*other_).taken.load();
    // More than was put is no count.
    return taken <= put_ && end - taken <= kRingBytes;
  };
  if (!has_room()) {
    // What was taken before the other rank sees the wait is seen here.
    WordsOf(*own_).waits.store(++waits_);
    if (!has_room()) return false;
  }
  std::memcpy(RingOf(*own_) + begin % kRingBytes, piece.data(), piece.size());
  put_ = end;
  WordsOf(*own_).put.store(put_);
  return true;
}

bool PieceLane::Take(size_t bytes, std::byte* to) {
  if (!is_open() || !Suits(bytes)) return false;
  const uint64_t begin = BeginOf(taken_, bytes);
  const uint64_t put = WordsOf(*other_).put.load();
  if (put < begin + bytes || put - taken_ > kRingBytes) return false;
  if (to != nullptr) {
    std::memcpy(to, RingOf(*other_) + begin % kRingBytes, bytes);
  }
  taken_ = begin + bytes;
  WordsOf(*own_).taken.store(taken_);
  return true;
}

bool PieceLane::TellsOfRoom() {
  if (!is_open()) return false;
  const uint64_t waits = WordsOf(*other_).waits.load();
  return std::exchange(waits_told_, waits) != waits;
}

}  // namespace parasol

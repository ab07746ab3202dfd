#ifndef PARASOL_CLUSTER_COLLECTIVE_PIECE_LANE_H_
#define PARASOL_CLUSTER_COLLECTIVE_PIECE_LANE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/rpc/shared_memory.h"

namespace parasol {

// The memory through which two ranks of a machine give each other the bytes of
// pieces, whose headers travel on their connection: so pieces come in order,
// and a connection that ends ends the lane. Each rank has a ring that it alone
// writes, so one that was stopped, given up and goes on changes nothing of the
// other's. Not thread-safe.
class PieceLane {
 public:
  static constexpr size_t kRingBytes = 1 << 20;
  // Bytes of a piece that travels so: smaller ones cost no less, and larger
  // ones don't fit twice.
  static constexpr size_t kLeastBytes = 4 << 10;
  static constexpr size_t kMostBytes = kRingBytes / 2;

  // Creates the own end, which offers itself to the other rank.
  //   Unavailable  the system gives no memory.
  static absl::StatusOr<std::unique_ptr<PieceLane>> Create();
  const std::string& offer() const { return own_->offer(); }

  // Opens the other rank's end. Errors are SharedMemory::Open()'s.
  absl::Status Open(const std::string& offer);
  bool is_open() const { return other_ != nullptr; }

  static bool Suits(size_t bytes) {
    return bytes >= kLeastBytes && bytes <= kMostBytes;
  }

  // Puts a piece that Suits() into the own ring. Returns false if there is no
  // room: then TellsOfRoom() of the other end is true once it has taken
  // something.
  bool Put(absl::Span<const std::byte> piece);

  // Takes the next piece of the other rank to `to`, or drops it if that is
  // null. Returns false if there is none of that size.
  bool Take(size_t bytes, std::byte* to);
  // Returns true, once, if the other rank waits for room that a Take() has
  // made: it looks when it hears of this one.
  bool TellsOfRoom();

 private:
  // The words of an end, in front of its ring. Its owner alone writes them.
  struct Words {
    // Bytes that the owner has put into its ring and taken from the other's,
    // with those at the end of a ring that no piece fits in.
    alignas(64) std::atomic<uint64_t> put;
    alignas(64) std::atomic<uint64_t> taken;
    // Number of waits for room.
    alignas(64) std::atomic<uint64_t> waits;
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free);

  explicit PieceLane(std::shared_ptr<SharedMemory> own)
      : own_(std::move(own)) {}

  static Words& WordsOf(const SharedMemory& memory) {
    return *reinterpret_cast<Words*>(memory.data());
  }
  static std::byte* RingOf(const SharedMemory& memory);
  // Returns where a piece of `bytes` bytes begins that is behind `position`.
  static uint64_t BeginOf(uint64_t position, size_t bytes);

  const std::shared_ptr<SharedMemory> own_;
  std::shared_ptr<SharedMemory> other_;
  // Counts of this end's own, which no other process can change.
  uint64_t put_ = 0;
  uint64_t taken_ = 0;
  uint64_t waits_ = 0;
  uint64_t waits_told_ = 0;  // waits of the other rank that were told
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PIECE_LANE_H_

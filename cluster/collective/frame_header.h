#ifndef PARASOL_CLUSTER_COLLECTIVE_FRAME_HEADER_H_
#define PARASOL_CLUSTER_COLLECTIVE_FRAME_HEADER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

enum class FrameKind : uint32_t {
  kBegin = 1,      // an operation and its size: OperationSpec
  kReady = 2,      // the sender can take all pieces of the operation
  kPiece = 3,      // bytes of an operation
  kHeartbeat = 4,  // nothing else to say
  kAbort = 5,      // why the group has ended: a status
  kLeave = 6,      // the sender takes part in no operation from `sequence` on
  kLanePiece = 7,  // a piece whose bytes are in a PieceLane, not behind this
};

// The header that precedes the bytes of a message between ranks. It has a
// checksum of itself, and one of the bytes that follow unless they are a
// piece's: a rank never takes a damaged message for another one.
struct FrameHeader {
  static constexpr size_t kBytes = 48;
  // Bytes of a piece, and of the text of an abort, at most.
  static constexpr uint64_t kMaxPieceBytes = 16 << 20;
  static constexpr uint64_t kMaxAbortBytes = 4096;

  FrameKind kind = FrameKind::kHeartbeat;
  int64_t epoch = 0;
  uint64_t sequence = 0;  // the operation's, from 0 in each group
  uint64_t piece = 0;
  uint64_t bytes = 0;  // number that follows
  uint32_t check = 0;  // crc32c of these bytes; 0 for a piece

  // Returns the header as it travels: "PCL3", kind, epoch, sequence, piece,
  // bytes, check and the crc32c of all these, the lowest byte first.
  std::array<char, kBytes> Encode() const;
  // Returns the header that kBytes bytes are.
  //   InvalidArgument  they are damaged, or none of the group of `epoch`, or
  //                    more bytes follow than its kind may have; the message
  //                    says which.
  static absl::StatusOr<FrameHeader> Parse(const char* bytes, int64_t epoch);
};

// Returns a status as the text of an abort in a group of `ranks`, and back. A
// text that is none gives Internal.
std::string EncodeAbort(const absl::Status& why);
absl::Status ParseAbort(absl::string_view text, size_t ranks);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_FRAME_HEADER_H_

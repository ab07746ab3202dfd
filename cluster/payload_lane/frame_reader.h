#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_FRAME_READER_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_FRAME_READER_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/payload_lane/receive_allowance.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace parasol {

// The memory, other than a frame's own, that parts of it are received to.
struct FrameTargets {
  // Bytes [first, first + count) of the frame go to `target`.
  struct Part {
    size_t first = 0;
    size_t count = 0;
    void* target = nullptr;
  };
  // Parts in the order of the frame; none overlaps another, none is empty.
  std::vector<Part> parts;
  // Keeps the memory of all targets. Released when the frame is, or when its
  // reader ends before it is whole.
  std::shared_ptr<const void> hold;
};

// The choice of the targets of frames.
class TargetFinder {
 public:
  virtual ~TargetFinder() = default;
  // Returns the targets for a frame of `frame_bytes` bytes that begins with
  // `start`, or nullopt if more bytes are needed to tell.
  virtual std::optional<FrameTargets> FindTargets(absl::string_view start,
                                                  size_t frame_bytes) = 0;
};

// Returns what precedes a frame of `bytes` bytes: their number and, in the
// upper half, its complement. So no flipped bit makes a reader wait for bytes
// that don't come.
inline uint64_t FrameLengthWord(uint32_t bytes) {
  return uint64_t{static_cast<uint32_t>(~bytes)} << 32 | bytes;
}

// The frames in the bytes that a lane delivers. A frame is FrameLengthWord(), 8
// bytes, the lowest first, and as many bytes as that says. Pure: the caller
// receives bytes to where NextPieces() says, and tells how many came.
//
// A frame's bytes are received where they stay, in one piece but for those that
// the finder has a target for. Bytes that came together with a frame's length,
// kStagedBytes at most, are copied there.
class FrameReader {
 public:
  static constexpr size_t kStagedBytes = 16 << 10;
  static constexpr size_t kLengthBytes = 8;
  // The size from which on the finder is asked.
  static constexpr size_t kTargetedFrameBytes = 32 << 10;

  struct Options {
    size_t max_frame_bytes = 0;
    // Counts the frame that is being received; null: it is not counted.
    ReceiveAllowance* allowance = nullptr;
    // Null: all bytes go to the frame's own memory.
    TargetFinder* target_finder = nullptr;
  };

  // Requires that the objects which the options name outlive the reader.
  explicit FrameReader(const Options& options)
      : options_(options), staged_(kStagedBytes) {}
  ~FrameReader();
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  // Returns the memory that the next bytes go to, at least one byte. Requires
  // that Take() has returned nothing, and no error. Valid until the next call.
  absl::Span<iovec> NextPieces();

  // Notes that the first `bytes` bytes of NextPieces() were received.
  void Received(size_t bytes);

  // Returns true if all of the next frame is there; begins it if its start is.
  // Fails as Take() does, which then returns the same error.
  absl::StatusOr<bool> IsWhole();

  // Returns the next frame if all of it is there.
  //   InvalidArgument    a frame is longer than Options::max_frame_bytes, or
  //                      its length is damaged.
  //   ResourceExhausted  the allowance has no room for it.
  // After an error nothing more can be read.
  absl::StatusOr<std::optional<grpc::ByteBuffer>> Take();

 private:
  // Most pieces of one receive, besides the staged bytes.
  static constexpr size_t kMaxPieces = 16;

  // A frame that is being received.
  struct Frame {
    size_t bytes = 0;
    FrameTargets targets;
    grpc::Slice own;  // the bytes that have no other target
    // The whole frame, in order; those before `piece` are full, and `filled`
    // bytes of this one.
    std::vector<iovec> pieces;
    size_t piece = 0;
    size_t filled = 0;
  };

  // Begins the next frame with the bytes that are staged.
  absl::Status Begin();
  // Lays the frame out.
  static Frame LayOut(size_t bytes, FrameTargets targets);
  // Notes that so many of its next bytes are there; returns how many of them
  // are the frame's.
  static size_t Fill(Frame& frame, size_t bytes);
  static grpc::ByteBuffer Finish(Frame frame);

  const Options options_;
  // Bytes that follow the frame that is being received: [begin_, end_).
  std::vector<uint8_t> staged_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::optional<Frame> frame_;
  std::array<iovec, kMaxPieces + 1> next_pieces_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_FRAME_READER_H_

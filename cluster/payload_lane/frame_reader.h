#ifndef PARASOL_CLUSTER_LANE_FRAME_READER_H_
#define PARASOL_CLUSTER_LANE_FRAME_READER_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/payload_lane/receive_allowance.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace parasol {

// The frames in the bytes that a lane delivers. A frame is its length, 8 bytes,
// the lowest first, and as many bytes. Pure: the caller receives bytes to where
// NextPieces() says, and tells how many came.
//
// A frame's bytes are received where they stay, in one piece; those that came
// together with its length, kStagedBytes at most, are copied there.
class FrameReader {
 public:
  static constexpr size_t kStagedBytes = 16 << 10;
  static constexpr size_t kLengthBytes = 8;

  // Counts the frame that is being received in `allowance`, which must outlive
  // the reader; null: in none.
  explicit FrameReader(size_t max_frame_bytes,
                       ReceiveAllowance* allowance = nullptr)
      : max_frame_bytes_(max_frame_bytes),
        allowance_(allowance),
        staged_(kStagedBytes) {}
  ~FrameReader();
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  // Returns the memory that the next bytes go to, at least one byte. Requires
  // that Take() has returned nothing, and no error.
  std::array<iovec, 2> NextPieces();

  // Notes that the first `bytes` bytes of NextPieces() were received.
  void Received(size_t bytes);

  // Returns the next frame if all of it is there.
  //   InvalidArgument    a frame is longer than `max_frame_bytes`.
  //   ResourceExhausted  the allowance has no room for it.
  // After an error nothing more can be read.
  absl::StatusOr<std::optional<grpc::ByteBuffer>> Take();

 private:
  // Begins the next frame with the bytes that are staged.
  absl::Status Begin();

  const size_t max_frame_bytes_;
  ReceiveAllowance* const allowance_;
  // Bytes that follow the frame that is being received: [begin_, end_).
  std::vector<uint8_t> staged_;
  size_t begin_ = 0;
  size_t end_ = 0;
  // The frame that is being received, and how much of it is there.
  std::optional<grpc::Slice> frame_;
  size_t filled_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_LANE_FRAME_READER_H_

#include "cluster/payload_lane/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

uint8_t* BytesOf(const grpc::Slice& slice) {
  return const_cast<uint8_t*>(slice.begin());
}

uint64_t ReadLength(const uint8_t* bytes) {
  uint64_t length = 0;
  for (size_t i = 0; i < FrameReader::kLengthBytes; ++i) {
    length |= uint64_t{bytes[i]} << (8 * i);
  }
  return length;
}

}  // namespace

FrameReader::~FrameReader() {
  if (frame_ && allowance_ != nullptr) allowance_->Return(frame_->size());
}

std::array<iovec, 2> FrameReader::NextPieces() {
  // What is staged is less than a length: to move it costs nothing.
  if (begin_ > 0) {
    std::memmove(staged_.data(), staged_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  iovec rest = {};
  if (frame_) {
    rest = {BytesOf(*frame_) + filled_, frame_->size() - filled_};
  }
  return {rest, iovec{staged_.data() + end_, staged_.size() - end_}};
}

void FrameReader::Received(size_t bytes) {
  if (frame_) {
    const size_t of_frame = std::min(bytes, frame_->size() - filled_);
    filled_ += of_frame;
    bytes -= of_frame;
  }
  end_ += bytes;
}

absl::StatusOr<std::optional<grpc::ByteBuffer>> FrameReader::Take() {
  if (!frame_) {
    RETURN_IF_ERROR(Begin());
  }
  if (!frame_ || filled_ < frame_->size()) return std::nullopt;
  const grpc::Slice frame = *std::exchange(frame_, std::nullopt);
  if (allowance_ != nullptr) allowance_->Return(frame.size());
  return grpc::ByteBuffer(&frame, 1);
}

absl::Status FrameReader::Begin() {
  if (end_ - begin_ < kLengthBytes) return absl::OkStatus();
  const uint64_t length = ReadLength(staged_.data() + begin_);
  if (length > max_frame_bytes_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a frame of ", length, " bytes; the limit is ", max_frame_bytes_));
  }
  if (allowance_ != nullptr && !allowance_->Take(length)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no room for a frame of ", length, " bytes: other streams are sending ",
        allowance_->held_bytes()));
  }
  begin_ += kLengthBytes;
  frame_.emplace(length);
  filled_ = std::min<size_t>(length, end_ - begin_);
  std::memcpy(BytesOf(*frame_), staged_.data() + begin_, filled_);
  begin_ += filled_;
  return absl::OkStatus();
}

}  // namespace parasol

#include "cluster/payload_lane/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "grpc/slice.h"

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
  if (frame_ && options_.allowance != nullptr) {
    options_.allowance->Return(frame_->bytes);
  }
}

absl::Span<iovec> FrameReader::NextPieces() {
  // What is staged is less than a length, or than the start of a frame that the
  // finder asks for: to move it costs little.
  if (begin_ > 0) {
    std::memmove(staged_.data(), staged_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  size_t count = 0;
  if (frame_) {
    size_t filled = frame_->filled;
    for (size_t i = frame_->piece; i < frame_->pieces.size(); ++i) {
      if (count == kMaxPieces)
        return absl::MakeSpan(next_pieces_.data(), count);
      const iovec& piece = frame_->pieces[i];
      next_pieces_[count++] = {static_cast<uint8_t*>(piece.iov_base) + filled,
                               piece.iov_len - filled};
      filled = 0;
    }
  }
  next_pieces_[count++] = {staged_.data() + end_, staged_.size() - end_};
  return absl::MakeSpan(next_pieces_.data(), count);
}

size_t FrameReader::Fill(Frame& frame, size_t bytes) {
  const size_t offered = bytes;
  while (bytes > 0 && frame.piece < frame.pieces.size()) {
    const size_t room = frame.pieces[frame.piece].iov_len - frame.filled;
    const size_t some = std::min(bytes, room);
    bytes -= some;
    frame.filled += some;
    if (some < room) break;
    ++frame.piece;
    frame.filled = 0;
  }
  return offered - bytes;
}

void FrameReader::Received(size_t bytes) {
  if (frame_) bytes -= Fill(*frame_, bytes);
  end_ += bytes;
}

absl::StatusOr<bool> FrameReader::IsWhole() {
  if (!frame_) {
    RETURN_IF_ERROR(Begin());
  }
  return frame_ && frame_->piece == frame_->pieces.size();
}

absl::StatusOr<std::optional<grpc::ByteBuffer>> FrameReader::Take() {
  ASSIGN_OR_RETURN(const bool is_whole, IsWhole());
  if (!is_whole) return std::nullopt;
  Frame frame = *std::exchange(frame_, std::nullopt);
  if (options_.allowance != nullptr) options_.allowance->Return(frame.bytes);
  return Finish(std::move(frame));
}

absl::Status FrameReader::Begin() {
  if (end_ - begin_ < kLengthBytes) return absl::OkStatus();
  const uint64_t word = ReadLength(staged_.data() + begin_);
  const auto length = static_cast<uint32_t>(word);
  if (word != FrameLengthWord(length)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the length of a frame is damaged: ", absl::Hex(word)));
  }
  if (length > options_.max_frame_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a frame of ", length,
                                                   " bytes; the limit is ",
                                                   options_.max_frame_bytes));
  }
  const size_t start_bytes =
      std::min<size_t>(length, end_ - begin_ - kLengthBytes);
  FrameTargets targets;
  if (options_.target_finder != nullptr && length >= kTargetedFrameBytes) {
    std::optional<FrameTargets> chosen = options_.target_finder->FindTargets(
        {reinterpret_cast<const char*>(staged_.data() + begin_ + kLengthBytes),
         start_bytes},
        length);
    const bool may_have_more = kLengthBytes + start_bytes < staged_.size();
    if (!chosen && may_have_more) return absl::OkStatus();
    if (chosen) targets = *std::move(chosen);
  }
  if (options_.allowance != nullptr && !options_.allowance->Take(length)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no room for a frame of ", length, " bytes: other streams are sending ",
        options_.allowance->held_bytes()));
  }
  begin_ += kLengthBytes;
  frame_ = LayOut(length, std::move(targets));
  size_t left = start_bytes;
  for (const iovec& piece : frame_->pieces) {
    const size_t some = std::min(left, piece.iov_len);
    if (some == 0) break;
    std::memcpy(piece.iov_base, staged_.data() + begin_, some);
    begin_ += some;
    left -= some;
  }
  Fill(*frame_, start_bytes);
  return absl::OkStatus();
}

FrameReader::Frame FrameReader::LayOut(size_t bytes, FrameTargets targets) {
  size_t own_bytes = bytes;
  for (const FrameTargets::Part& part : targets.parts) own_bytes -= part.count;
  Frame frame = {.bytes = bytes,
                 .targets = std::move(targets),
                 // A small slice would hold the bytes in itself, and move.
                 .own = grpc::Slice(grpc_slice_malloc_large(own_bytes),
                                    grpc::Slice::STEAL_REF),
                 .pieces = {}};
  frame.pieces.reserve(2 * frame.targets.parts.size() + 1);
  uint8_t* own = BytesOf(frame.own);
  size_t at = 0;
  const auto add_own = [&](size_t end) {
    if (end == at) return;
    frame.pieces.push_back({own, end - at});
    own += end - at;
    at = end;
  };
  for (const FrameTargets::Part& part : frame.targets.parts) {
    add_own(part.first);
    frame.pieces.push_back({part.target, part.count});
    at += part.count;
  }
  add_own(bytes);
  return frame;
}

grpc::ByteBuffer FrameReader::Finish(Frame frame) {
  if (frame.targets.parts.empty()) return grpc::ByteBuffer(&frame.own, 1);
  using Hold = std::shared_ptr<const void>;
  std::vector<grpc::Slice> slices;
  slices.reserve(frame.pieces.size());
  size_t own_used = 0;
  auto part = frame.targets.parts.begin();
  for (const iovec& piece : frame.pieces) {
    const bool is_placed =
        part != frame.targets.parts.end() && piece.iov_base == part->target;
    if (is_placed) {
      ++part;
      slices.emplace_back(
          piece.iov_base, piece.iov_len,
          [](void* hold) { delete static_cast<Hold*>(hold); },
          new Hold(frame.targets.hold));
    } else {
      slices.push_back(frame.own.sub(own_used, own_used + piece.iov_len));
      own_used += piece.iov_len;
    }
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace parasol

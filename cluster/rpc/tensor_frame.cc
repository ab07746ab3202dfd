#include "cluster/rpc/tensor_frame.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "cluster/rpc/protocol_limits.h"
#include "google/protobuf/io/coded_stream.h"
#include "grpc/slice.h"
#include "grpcpp/support/slice.h"

namespace parasol {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kFixed32 = 5
};

constexpr uint8_t kHeaderTag = 1 << 3 | kBytes;
constexpr uint8_t kPayloadTag = 2 << 3 | kBytes;

// What ends a header's bytes: the tag of its field 200000, a fixed32, and the
// crc32c of the bytes before. Protobuf skips it.
constexpr absl::string_view kCheckTag = "\x85\xD4\x61";
constexpr size_t kCheckBytes = kCheckTag.size() + sizeof(uint32_t);

constexpr int kMaxVarintBytes = 10;
// Tags and lengths are 32 bits: 4 × 7 + 4.
constexpr int kMaxVarint32Bytes = 5;

absl::Status Malformed(absl::string_view what, size_t offset) {
  return absl::InvalidArgumentError(
      absl::StrFormat("tensor frame: %s at byte %d", what, offset));
}

// Returns the bytes of a header without its check, if it has one.
absl::string_view WithoutCheck(absl::string_view header) {
  const bool has_check =
      header.size() >= kCheckBytes &&
      header.substr(header.size() - kCheckBytes, kCheckTag.size()) == kCheckTag;
  return has_check ? header.substr(0, header.size() - kCheckBytes) : header;
}

// Reads protobuf's primitives from slices that may end anywhere.
class SliceReader {
 public:
  explicit SliceReader(const std::vector<grpc::Slice>& slices)
      : slices_(slices) {
    for (const grpc::Slice& slice : slices_) size_ += slice.size();
    SkipEmptySlices();
  }

  bool AtEnd() const { return offset_ == size_; }
  size_t offset() const { return offset_; }
  size_t remaining() const { return size_ - offset_; }

  // False if the bytes end or the number takes more than `max_bytes`.
  bool ReadVarint(int max_bytes, uint64_t* value) {
    *value = 0;
    for (int i = 0; i < max_bytes && !AtEnd(); ++i) {
      const uint8_t byte = slices_[index_].begin()[within_];
      Advance(1);
      *value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
      if (byte < 0x80) return true;
    }
    return false;
  }

  // The next `count` bytes, of which there must be as many.
  PayloadView::Pieces Take(size_t count) {
    PayloadView::Pieces pieces;
    while (count > 0) {
      const grpc::Slice& slice = slices_[index_];
      const size_t n = std::min(count, slice.size() - within_);
      pieces.emplace_back(
          reinterpret_cast<const char*>(slice.begin()) + within_, n);
      Advance(n);
      count -= n;
    }
    return pieces;
  }

 private:
  // Stays within the current slice or goes to the start of the next.
  void Advance(size_t count) {
    offset_ += count;
    within_ += count;
    SkipEmptySlices();
  }

  void SkipEmptySlices() {
    while (index_ < slices_.size() && within_ == slices_[index_].size()) {
      ++index_;
      within_ = 0;
    }
  }

  const std::vector<grpc::Slice>& slices_;
  size_t size_ = 0;
  size_t offset_ = 0;
  size_t index_ = 0;
  size_t within_ = 0;
};

absl::Status ReadVarint(SliceReader& reader, int max_bytes, uint64_t* value) {
  const size_t at = reader.offset();
  if (!reader.ReadVarint(max_bytes, value)) return Malformed("bad varint", at);
  return absl::OkStatus();
}

absl::Status ReadPieces(SliceReader& reader, uint64_t count,
                        PayloadView::Pieces* pieces) {
  if (count > reader.remaining()) {
    return Malformed(absl::StrFormat("%d bytes announced, %d there", count,
                                     reader.remaining()),
                     reader.offset());
  }
  *pieces = reader.Take(count);
  return absl::OkStatus();
}

absl::Status ReadBytes(SliceReader& reader, PayloadView::Pieces* pieces) {
  uint64_t size = 0;
  RETURN_IF_ERROR(ReadVarint(reader, kMaxVarint32Bytes, &size));
  return ReadPieces(reader, size, pieces);
}

absl::Status SkipField(SliceReader& reader, uint32_t wire_type) {
  PayloadView::Pieces pieces;
  uint64_t number = 0;
  switch (wire_type) {
    case kVarint:
      return ReadVarint(reader, kMaxVarintBytes, &number);
    case kFixed64:
      return ReadPieces(reader, 8, &pieces);
    case kBytes:
      return ReadBytes(reader, &pieces);
    case kFixed32:
      return ReadPieces(reader, 4, &pieces);
    default:
      return Malformed(absl::StrFormat("wire type %d", wire_type),
                       reader.offset());
  }
}

// A header that comes twice is merged, as protobuf does. `merged_bytes`: of all
// of them.
absl::Status MergeHeader(SliceReader& reader,
                         google::protobuf::MessageLite* header,
                         size_t max_bytes, size_t* merged_bytes) {
  PayloadView::Pieces pieces;
  RETURN_IF_ERROR(ReadBytes(reader, &pieces));
  std::string joined;
  absl::string_view bytes;
  if (pieces.size() == 1) {
    bytes = pieces[0];
  } else {
    for (absl::string_view piece : pieces) absl::StrAppend(&joined, piece);
    bytes = joined;
  }
  *merged_bytes += bytes.size();
  if (*merged_bytes > max_bytes) {
    return Malformed(absl::StrFormat("a header of %d bytes", *merged_bytes),
                     reader.offset() - bytes.size());
  }
  const absl::string_view checked = WithoutCheck(bytes);
  if (checked.size() < bytes.size()) {
    uint32_t check;
    std::memcpy(&check, bytes.end() - sizeof(check), sizeof(check));
    if (check != Crc32cOf(checked)) {
      return Malformed("a header with another checksum",
                       reader.offset() - bytes.size());
    }
  }
  CodedInputStream input(reinterpret_cast<const uint8_t*>(checked.data()),
                         static_cast<int>(checked.size()));
  if (!header->MergeFromCodedStream(&input) || !input.ConsumedEntireMessage()) {
    return Malformed("bad header", reader.offset() - bytes.size());
  }
  return absl::OkStatus();
}

uint8_t* WriteLengthPrefix(uint8_t tag, size_t size, uint8_t* to) {
  *to++ = tag;
  return CodedOutputStream::WriteVarint64ToArray(size, to);
}

grpc::Slice PayloadSlice(const PayloadRef& payload) {
  auto* owner = new std::shared_ptr<const void>(payload.owner);
  return grpc::Slice(
      const_cast<void*>(payload.data), payload.size,
      [](void* owner) {
        delete static_cast<std::shared_ptr<const void>*>(owner);
      },
      owner);
}

// Up to so many bytes copying costs less than a slice of their own, in memory
// management here and in the system call that gathers them.
constexpr size_t kCopiedPayloadBytes = 8 << 10;

bool IsCopied(const PayloadRef& payload) {
  return payload.size <= kCopiedPayloadBytes;
}

// What the frame has besides the payloads that stay where they are, one after
// the other in one allocation.
class FrameText {
 public:
  explicit FrameText(size_t max_bytes)
      : slice_(grpc_slice_malloc(max_bytes)),
        begin_(GRPC_SLICE_START_PTR(slice_)),
        end_(begin_) {}

  uint8_t* end() { return end_; }
  void set_end(uint8_t* end) { end_ = end; }
  void Append(const void* data, size_t size) {
    std::memcpy(end_, data, size);
    end_ += size;
  }

  // Here the frame continues with another slice.
  void Cut() { cuts_.push_back(end_ - begin_); }

  // The pieces between the cuts, one more than there are cuts.
  std::vector<grpc::Slice> Pieces() && {
    Cut();
    const grpc::Slice whole(slice_, grpc::Slice::STEAL_REF);
    std::vector<grpc::Slice> pieces;
    size_t first = 0;
    for (const size_t cut : cuts_) {
      pieces.push_back(whole.sub(first, cut));
      first = cut;
    }
    return pieces;
  }

 private:
  grpc_slice slice_;
  uint8_t* const begin_;
  uint8_t* end_;
  std::vector<size_t> cuts_;
};

}  // namespace

grpc::ByteBuffer EncodeFrame(const google::protobuf::MessageLite& header,
                             const std::vector<PayloadRef>& payloads) {
  const size_t header_bytes = header.ByteSizeLong() + kCheckBytes;
  size_t text_bytes = 1 + kMaxVarintBytes + header_bytes;
  for (const PayloadRef& payload : payloads) {
    text_bytes += 1 + kMaxVarintBytes;
    if (IsCopied(payload)) text_bytes += payload.size;
  }
  FrameText text(text_bytes);
  uint8_t* const begin =
      WriteLengthPrefix(kHeaderTag, header_bytes, text.end());
  text.set_end(header.SerializeWithCachedSizesToArray(begin));
  const uint32_t check = Crc32cOf({reinterpret_cast<const char*>(begin),
                                   static_cast<size_t>(text.end() - begin)});
  text.Append(kCheckTag.data(), kCheckTag.size());
  text.Append(&check, sizeof(check));
  std::vector<grpc::Slice> in_place;
  for (const PayloadRef& payload : payloads) {
    text.set_end(WriteLengthPrefix(kPayloadTag, payload.size, text.end()));
    if (payload.size == 0) continue;
    if (IsCopied(payload)) {
      text.Append(payload.data, payload.size);
    } else {
      text.Cut();
      in_place.push_back(PayloadSlice(payload));
    }
  }
  const std::vector<grpc::Slice> pieces = std::move(text).Pieces();
  std::vector<grpc::Slice> slices;
  slices.reserve(pieces.size() + in_place.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    slices.push_back(pieces[i]);
    if (i < in_place.size()) slices.push_back(std::move(in_place[i]));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

FrameStart FindHeader(absl::string_view start) {
  if (start.empty()) return {.needs_more = true};
  if (static_cast<uint8_t>(start[0]) != kHeaderTag) return {};
  uint64_t size = 0;
  size_t at = 1;
  while (true) {
    if (at > kMaxVarint32Bytes) return {};
    if (at == start.size()) return {.needs_more = true};
    const auto byte = static_cast<uint8_t>(start[at]);
    size |= static_cast<uint64_t>(byte & 0x7F) << (7 * (at - 1));
    ++at;
    if (byte < 0x80) break;
  }
  if (size > kMaxHeaderBytes) return {};
  if (size > start.size() - at) return {.needs_more = true};
  return {.header = start.substr(at, size)};
}

size_t PayloadPrefixBytes(size_t payload_bytes) {
  return 1 + CodedOutputStream::VarintSize64(payload_bytes);
}

absl::StatusOr<ReceivedFrame> ReceivedFrame::Parse(
    const grpc::ByteBuffer& buffer, size_t max_payloads,
    google::protobuf::MessageLite* header, size_t max_header_bytes) {
  header->Clear();
  ReceivedFrame frame;
  if (!buffer.Dump(&frame.slices_).ok()) {
    return absl::InvalidArgumentError("tensor frame: unreadable buffer");
  }
  SliceReader reader(frame.slices_);
  frame.bytes_ = reader.remaining();
  size_t header_bytes = 0;
  while (!reader.AtEnd()) {
    const size_t at = reader.offset();
    uint64_t tag = 0;
    RETURN_IF_ERROR(ReadVarint(reader, kMaxVarint32Bytes, &tag));
    if (tag > UINT32_MAX || tag >> 3 == 0) return Malformed("bad tag", at);
    if (tag == kHeaderTag) {
      RETURN_IF_ERROR(
          MergeHeader(reader, header, max_header_bytes, &header_bytes));
    } else if (tag == kPayloadTag) {
      if (frame.payloads_.size() == max_payloads) {
        return Malformed(absl::StrFormat("more than %d payloads", max_payloads),
                         at);
      }
      PayloadView::Pieces pieces;
      RETURN_IF_ERROR(ReadBytes(reader, &pieces));
      frame.payloads_.emplace_back(std::move(pieces));
    } else {
      RETURN_IF_ERROR(SkipField(reader, tag & 7));
    }
  }
  return frame;
}

std::shared_ptr<const void> ReceivedFrame::Keep() {
  if (kept_ == nullptr) {
    kept_ = std::make_shared<const Slices>(std::move(slices_));
  }
  return kept_;
}

}  // namespace parasol

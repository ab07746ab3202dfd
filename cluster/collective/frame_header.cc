#include "cluster/collective/frame_header.h"

#include <cstring>
#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "cluster/collective/collective_group.h"
#include "cluster/collective/operation_spec.h"

namespace parasol {
namespace {

constexpr char kFrameMagic[4] = {'P', 'C', 'L', '3'};
constexpr size_t kCheckedBytes = FrameHeader::kBytes - sizeof(uint32_t);

template <typename T>
void Put(char*& to, T value) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  std::memcpy(to, &value, sizeof(value));
  to += sizeof(value);
}

template <typename T>
T Get(const char*& from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  from += sizeof(value);
  return value;
}

// Returns how many bytes may follow a header of that kind, or nullopt if there
// is no such kind.
std::optional<uint64_t> MaxBytesOf(FrameKind kind) {
  switch (kind) {
    case FrameKind::kBegin:
      return OperationSpec::kBytes;
    case FrameKind::kPiece:
    case FrameKind::kLanePiece:
      return FrameHeader::kMaxPieceBytes;
    case FrameKind::kAbort:
      return FrameHeader::kMaxAbortBytes;
    case FrameKind::kReady:
    case FrameKind::kHeartbeat:
    case FrameKind::kLeave:
      return 0;
  }
  return std::nullopt;
}

}  // namespace

std::array<char, FrameHeader::kBytes> FrameHeader::Encode() const {
  std::array<char, kBytes> encoded;
  char* to = encoded.data();
  std::memcpy(to, kFrameMagic, sizeof(kFrameMagic));
  to += sizeof(kFrameMagic);
  Put(to, static_cast<uint32_t>(kind));
  Put(to, epoch);
  Put(to, sequence);
  Put(to, piece);
  Put(to, bytes);
  Put(to, check);
  Put(to, Crc32cOf({encoded.data(), kCheckedBytes}));
  return encoded;
}

absl::StatusOr<FrameHeader> FrameHeader::Parse(const char* bytes,
                                               int64_t epoch) {
  if (std::memcmp(bytes, kFrameMagic, sizeof(kFrameMagic)) != 0) {
    return absl::InvalidArgumentError("a frame does not begin with PCL3");
  }
  uint32_t crc;
  std::memcpy(&crc, bytes + kCheckedBytes, sizeof(crc));
  if (crc != Crc32cOf({bytes, kCheckedBytes})) {
    return absl::InvalidArgumentError(
        "a frame's header is damaged: its checksum is another");
  }
  const char* from = bytes + sizeof(kFrameMagic);
  FrameHeader header;
  header.kind = static_cast<FrameKind>(Get<uint32_t>(from));
  header.epoch = Get<int64_t>(from);
  header.sequence = Get<uint64_t>(from);
  header.piece = Get<uint64_t>(from);
  header.bytes = Get<uint64_t>(from);
  header.check = Get<uint32_t>(from);
  const std::optional<uint64_t> most = MaxBytesOf(header.kind);
  if (!most.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of kind ", static_cast<uint32_t>(header.kind)));
  }
  if (header.epoch != epoch) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a frame of epoch ", header.epoch, " in a group of epoch ", epoch));
  }
  if (header.bytes > *most) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of ", header.bytes, " bytes and kind ",
                     static_cast<uint32_t>(header.kind), ", at most ", *most));
  }
  return header;
}

std::string EncodeAbort(const absl::Status& why) {
  std::string text;
  text.push_back(static_cast<char>(why.code()));
  const int lost = LostRank(why).value_or(-1);
  text.append(reinterpret_cast<const char*>(&lost), sizeof(lost));
  absl::StrAppend(&text, why.message().substr(
                             0, FrameHeader::kMaxAbortBytes - text.size()));
  return text;
}

absl::Status ParseAbort(absl::string_view text, size_t ranks) {
  int lost;
  const bool is_one =
      text.size() >= 1 + sizeof(lost) && text[0] > 0 &&
      text[0] <= static_cast<char>(absl::StatusCode::kUnauthenticated);
  if (!is_one) return absl::InternalError("aborted without a reason");
  std::memcpy(&lost, text.data() + 1, sizeof(lost));
  const absl::Status why(static_cast<absl::StatusCode>(text[0]),
                         text.substr(1 + sizeof(lost)));
  const bool is_rank = lost >= 0 && lost < static_cast<int>(ranks);
  return is_rank ? WithLostRank(why, lost) : why;
}

}  // namespace parasol

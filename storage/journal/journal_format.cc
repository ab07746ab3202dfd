#include "storage/journal/journal_format.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"
#include "storage/checked_message.h"

namespace parasol {
namespace {

constexpr absl::string_view kSegmentMagic = "PARASOLJ";
constexpr uint32_t kVersion = 1;
constexpr char kRecordMark[] = {'P', 'J', 'R', 'C'};
constexpr char kNamePrefix[] = "segment-";
constexpr absl::string_view kUnread = "unread-";
// The header's numbers, in front of the run's name.
constexpr size_t kFixedBytes = 4 + 4 + 4 + 5 * 8 + 8;
// The magic number, the length and the crc around a checked message.
constexpr size_t kFrameBytes = 20;

}  // namespace

std::string SegmentHeader::Encode() const {
  std::string payload;
  AppendLittleEndian(payload, kVersion);
  AppendLittleEndian(payload, owner.shard);
  AppendLittleEndian(payload, owner.num_shards);
  AppendLittleEndian(payload, owner.layout);
  AppendLittleEndian(payload, journal);
  AppendLittleEndian(payload, segment);
  AppendLittleEndian(payload, first_record);
  AppendLittleEndian(payload, bytes_before);
  AppendLittleEndian(payload, progress);
  payload += owner.run_id;
  return EncodeChecked(kSegmentMagic, payload);
}

absl::StatusOr<SegmentHeader> SegmentHeader::Decode(absl::string_view bytes,
                                                    size_t& size) {
  if (bytes.size() < kFrameBytes) {
    return absl::DataLossError("the header is cut off");
  }
  const auto length = LoadLittleEndian<uint64_t>(bytes.data() + 8);
  if (length < kFixedBytes || length > bytes.size() - kFrameBytes) {
    return absl::DataLossError("the header is damaged");
  }
  size = kFrameBytes + length;
  ASSIGN_OR_RETURN(const absl::string_view payload,
                   DecodeChecked(kSegmentMagic, bytes.substr(0, size)));
  const char* at = payload.data();
  const auto version = LoadLittleEndian<uint32_t>(at);
  if (version != kVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "has version ", version, "; this program reads version ", kVersion));
  }
  SegmentHeader header;
  header.owner.shard = LoadLittleEndian<uint32_t>(at + 4);
  header.owner.num_shards = LoadLittleEndian<uint32_t>(at + 8);
  header.owner.layout = LoadLittleEndian<uint64_t>(at + 12);
  header.journal = LoadLittleEndian<uint64_t>(at + 20);
  header.segment = LoadLittleEndian<uint64_t>(at + 28);
  header.first_record = LoadLittleEndian<uint64_t>(at + 36);
  header.bytes_before = LoadLittleEndian<uint64_t>(at + 44);
  header.progress = LoadLittleEndian<int64_t>(at + 52);
  header.owner.run_id = std::string(payload.substr(kFixedBytes));
  return header;
}

void RecordHeader::Encode(char* out) const {
  std::memcpy(out, kRecordMark, 4);
  std::memcpy(out + 4, &length, 4);
  std::memcpy(out + 8, &record, 8);
  std::memcpy(out + 16, &data_crc, 4);
  const uint32_t crc = MaskCrc(Crc32cOf(absl::string_view(out, 20)));
  std::memcpy(out + 20, &crc, 4);
}

std::optional<RecordHeader> RecordHeader::Decode(const char* bytes) {
  if (std::memcmp(bytes, kRecordMark, 4) != 0 ||
      MaskCrc(Crc32cOf(absl::string_view(bytes, 20))) !=
          LoadLittleEndian<uint32_t>(bytes + 20)) {
    return std::nullopt;
  }
  const RecordHeader header = {
      .length = LoadLittleEndian<uint32_t>(bytes + 4),
      .record = LoadLittleEndian<uint64_t>(bytes + 8),
      .data_crc = LoadLittleEndian<uint32_t>(bytes + 16)};
  if (header.length > kMaxRecordBytes) return std::nullopt;
  return header;
}

std::string JournalPath(absl::string_view directory, uint32_t shard,
                        uint32_t num_shards) {
  return absl::StrFormat("%s/journal/shard-%05d-of-%05d", directory, shard,
                         num_shards);
}

std::string SegmentName(uint64_t segment) {
  return absl::StrFormat("%s%012d", kNamePrefix, segment);
}

std::string UnreadName(absl::string_view segment_name) {
  return absl::StrCat(kUnread, segment_name);
}

bool IsUnreadName(absl::string_view name) {
  return absl::ConsumePrefix(&name, kUnread) && SegmentOfName(name).has_value();
}

std::optional<uint64_t> SegmentOfName(absl::string_view name) {
  const absl::string_view whole = name;
  uint64_t segment = 0;
  if (!absl::ConsumePrefix(&name, kNamePrefix) ||
      !absl::SimpleAtoi(name, &segment) || SegmentName(segment) != whole) {
    return std::nullopt;
  }
  return segment;
}

}  // namespace parasol

#include "storage/checked_message.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "storage/byte_order.h"

namespace parasol {
namespace {

constexpr size_t kPrefixBytes = 16;  // magic, length
constexpr size_t kCrcBytes = 4;

}  // namespace

std::string EncodeChecked(absl::string_view magic, absl::string_view payload) {
  std::string bytes(magic);
  AppendLittleEndian(bytes, static_cast<uint64_t>(payload.size()));
  absl::StrAppend(&bytes, payload);
  AppendLittleEndian(bytes, MaskCrc(Crc32cOf(bytes)));
  return bytes;
}

absl::StatusOr<absl::string_view> DecodeChecked(absl::string_view magic,
                                                absl::string_view bytes) {
  if (!absl::StartsWith(bytes, magic)) {
    return absl::DataLossError(
        absl::StrCat("does not begin with \"", magic, "\""));
  }
  if (bytes.size() < kPrefixBytes + kCrcBytes ||
      LoadLittleEndian<uint64_t>(bytes.data() + magic.size()) !=
          bytes.size() - kPrefixBytes - kCrcBytes) {
    return absl::DataLossError(
        absl::StrCat("its length, ", bytes.size(), " bytes, is wrong"));
  }
  const absl::string_view checked = bytes.substr(0, bytes.size() - kCrcBytes);
  if (LoadLittleEndian<uint32_t>(bytes.data() + checked.size()) !=
      MaskCrc(Crc32cOf(checked))) {
    return absl::DataLossError("its checksum is wrong");
  }
  return checked.substr(kPrefixBytes);
}

}  // namespace parasol

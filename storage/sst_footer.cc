#include "storage/sst_footer.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"

namespace parasol {
namespace {

// RocksDB's block-based tables, format_version 1 to 5: a byte for the kind of
// checksum, the places (offset and size, as varints) of the metaindex and the
// index, padded to 40 bytes, the version, and a magic number.
constexpr size_t kFooterBytes = 53;
constexpr size_t kPlacesBytes = 40;
// The kind of compression and the checksum behind each block.
constexpr uint64_t kTrailerBytes = 5;
constexpr uint64_t kFooterMagic = 0x88e241b785f4cff7;
constexpr int kMaxVarintBytes = 10;

// Takes a varint off the front of `bytes`; false if there is none.
bool TakeVarint(absl::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int i = 0; i < kMaxVarintBytes && !bytes.empty(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << (7 * i);
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

}  // namespace

absl::Status CheckFooter(CheckedFile& file) {
  const absl::Status damaged = absl::DataLossError(
      absl::StrCat(file.path(), ": does not end as an SST file does"));
  if (file.size() < kFooterBytes) return damaged;
  char bytes[kFooterBytes];
  RETURN_IF_ERROR(file.Read(file.size() - kFooterBytes, kFooterBytes, bytes));
  if (LoadLittleEndian<uint64_t>(bytes + kFooterBytes - sizeof(kFooterMagic)) !=
      kFooterMagic) {
    return damaged;
  }
  absl::string_view places(bytes + 1, kPlacesBytes);
  uint64_t ends[2];
  for (uint64_t& end : ends) {
    uint64_t offset, size;
    if (!TakeVarint(places, offset) || !TakeVarint(places, size) ||
        offset > file.size() || size > file.size() - offset) {
      return damaged;
    }
    end = offset + size + kTrailerBytes;
  }
  // The metaindex is the last block.
  const bool is_last = ends[0] == file.size() - kFooterBytes;
  return is_last && ends[1] <= ends[0] ? absl::OkStatus() : damaged;
}

}  // namespace parasol

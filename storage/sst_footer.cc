#include "storage/sst_footer.h"

#include <cstdint>

#include "absl/status/statusor.h"
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
// The number at the end of a block: of its restarts, and a bit that says
// whether a hash index is before it.
constexpr uint64_t kRestartsBytes = 4;
constexpr uint32_t kHashIndexBit = 0x80000000;
// Kinds of checksums are 1 to 4. RocksDB knows 0, too: none at all, so that a
// changed block would be believed.
constexpr char kFirstChecksum = 1;
constexpr char kLastChecksum = 4;

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

// Checks the end of the properties, the block before the metaindex. RocksDB
// looks at them before it compares their checksum, and a damaged end fails an
// assertion there.
absl::StatusOr<bool> HasSoundProperties(CheckedFile& file, uint64_t metaindex) {
  if (metaindex < kRestartsBytes + kTrailerBytes) return false;
  char bytes[kRestartsBytes];
  RETURN_IF_ERROR(file.Read(metaindex - kTrailerBytes - kRestartsBytes,
                            kRestartsBytes, bytes));
  const auto restarts = LoadLittleEndian<uint32_t>(bytes);
  return (restarts & kHashIndexBit) == 0 &&
         restarts <= metaindex / kRestartsBytes;
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
  if (bytes[0] < kFirstChecksum || bytes[0] > kLastChecksum) return damaged;
  absl::string_view places(bytes + 1, kPlacesBytes);
  uint64_t ends[2], offsets[2];
  for (int i = 0; i < 2; ++i) {
    uint64_t& offset = offsets[i];
    uint64_t size;
    if (!TakeVarint(places, offset) || !TakeVarint(places, size) ||
        offset > file.size() || size > file.size() - offset) {
      return damaged;
    }
    ends[i] = offset + size + kTrailerBytes;
  }
  // The metaindex is the last block.
  const bool is_last = ends[0] == file.size() - kFooterBytes;
  if (!is_last || ends[1] > ends[0]) return damaged;
  ASSIGN_OR_RETURN(const bool is_sound, HasSoundProperties(file, offsets[0]));
  return is_sound ? absl::OkStatus() : damaged;
}

}  // namespace parasol

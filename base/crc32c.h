#ifndef PARASOL_BASE_CRC32C_H_
#define PARASOL_BASE_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace parasol {

// Returns the crc32c (Castagnoli) of earlier bytes followed by `bytes`, where
// `crc` is the crc32c of the earlier bytes (0 if there are none). Uses the
// CPU's instruction where there is one; Debian's RocksDB is compiled without
// it, and reaches 0.4 GB/s.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

inline uint32_t Crc32cOf(absl::string_view bytes) {
  return ExtendCrc32c(0, bytes);
}

// Masks a crc that is stored beside bytes that contain crcs themselves.
uint32_t MaskCrc(uint32_t crc);

namespace internal {

// Computes ExtendCrc32c() without the instruction.
uint32_t ExtendCrc32cPortably(uint32_t crc, absl::string_view bytes);

}  // namespace internal
}  // namespace parasol

#endif  // PARASOL_BASE_CRC32C_H_

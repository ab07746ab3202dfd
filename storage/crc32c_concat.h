#ifndef PARASOL_STORAGE_CRC32C_CONCAT_H_
#define PARASOL_STORAGE_CRC32C_CONCAT_H_

#include <cstdint>

namespace parasol {

// Returns the crc32c of bytes whose crc32c is `first`, followed by
// `second_bytes` bytes whose crc32c is `second`. Takes about a microsecond.
uint32_t ConcatCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes);

}  // namespace parasol

#endif  // PARASOL_STORAGE_CRC32C_CONCAT_H_

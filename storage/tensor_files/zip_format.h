#ifndef PARASOL_STORAGE_TENSOR_FILES_ZIP_FORMAT_H_
#define PARASOL_STORAGE_TENSOR_FILES_ZIP_FORMAT_H_

#include <cstddef>
#include <cstdint>

// Numbers of the ZIP format (PKWARE's APPNOTE.TXT) that reader and writer
// share.
namespace parasol::zip {

inline constexpr uint32_t kLocalSignature = 0x04034b50;
inline constexpr uint32_t kCentralSignature = 0x02014b50;
inline constexpr uint32_t kEndSignature = 0x06054b50;
inline constexpr uint32_t kEnd64Signature = 0x06064b50;
inline constexpr uint32_t kEnd64LocatorSignature = 0x07064b50;

// Bytes of the records without the fields of variable length.
inline constexpr size_t kLocalBytes = 30;
inline constexpr size_t kCentralBytes = 46;
inline constexpr size_t kEndBytes = 22;
inline constexpr size_t kEnd64Bytes = 56;
inline constexpr size_t kEnd64LocatorBytes = 20;

// The place of a local header's crc32.
inline constexpr size_t kLocalCrcOffset = 14;

// The tag of the extra field with 64-bit sizes and offsets.
inline constexpr uint16_t kExtra64 = 1;
// Values of 32 and 16 bits that say "see the field of 64 bits".
inline constexpr uint32_t kSee64 = 0xffffffff;
inline constexpr uint16_t kSee64Count = 0xffff;

inline constexpr uint16_t kStored = 0;
inline constexpr uint16_t kDeflated = 8;
inline constexpr uint16_t kEncryptedFlag = 1;

}  // namespace parasol::zip

#endif  // PARASOL_STORAGE_TENSOR_FILES_ZIP_FORMAT_H_

#ifndef PARASOL_STORAGE_TENSOR_FILES_VARINT_H_
#define PARASOL_STORAGE_TENSOR_FILES_VARINT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

// Varints of protocol buffers and LevelDB: 7 bits in a byte, the lowest first.
namespace parasol {

inline void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) {
    out.push_back(static_cast<char>(value | 0x80));
  }
  out.push_back(static_cast<char>(value));
}

// Removes the varint at the front of `bytes` and returns it; nullopt if there
// is none.
inline std::optional<uint64_t> TakeVarint(absl::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_VARINT_H_

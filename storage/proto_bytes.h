#ifndef PARASOL_STORAGE_PROTO_BYTES_H_
#define PARASOL_STORAGE_PROTO_BYTES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

// Protobuf's encoding of messages that TensorFlow defines, field by field.
namespace parasol::proto_bytes {

// Wire types.
enum : int { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <typename T>
void AppendLittleEndian(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

inline void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) {
    out.push_back(static_cast<char>(value | 0x80));
  }
  out.push_back(static_cast<char>(value));
}

inline void AppendKey(int field, int wire_type, std::string& out) {
  out.push_back(static_cast<char>(field << 3 | wire_type));
}

inline void AppendBytes(int field, absl::string_view bytes, std::string& out) {
  AppendKey(field, kBytes, out);
  AppendVarint(bytes.size(), out);
  out.append(bytes.data(), bytes.size());
}

inline void AppendDouble(int field, double value, std::string& out) {
  AppendKey(field, kFixed64, out);
  AppendLittleEndian(std::bit_cast<uint64_t>(value), out);
}

}  // namespace parasol::proto_bytes

#endif  // PARASOL_STORAGE_PROTO_BYTES_H_

#ifndef PARASOL_ML_INPUT_TESTING_TF_EXAMPLE_WRITER_H_
#define PARASOL_ML_INPUT_TESTING_TF_EXAMPLE_WRITER_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/crc32c.h"

namespace parasol {

// Writers of tf.Example and TFRecord for tests, by the formats' definitions.

inline std::string Varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) {
    bytes += static_cast<char>(number | 0x80);
  }
  return bytes + static_cast<char>(number);
}

inline std::string LittleEndianBytes(uint64_t number, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i, number >>= 8) {
    bytes += static_cast<char>(number);
  }
  return bytes;
}

inline std::string MessageField(int number, absl::string_view message) {
  return absl::StrCat(Varint(number << 3 | 2), Varint(message.size()), message);
}

inline std::string FeatureEntry(absl::string_view name,
                                absl::string_view feature) {
  return MessageField(1, MessageField(1, name) + MessageField(2, feature));
}

inline std::string TextFeature(absl::string_view name,
                               const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += MessageField(1, value);
  return FeatureEntry(name, MessageField(1, list));
}

inline std::string RealFeature(absl::string_view name,
                               const std::vector<float>& values) {
  std::string packed;
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    packed += LittleEndianBytes(bits, sizeof(bits));
  }
  return FeatureEntry(name, MessageField(2, MessageField(1, packed)));
}

inline std::string IntegerFeature(absl::string_view name,
                                  const std::vector<int64_t>& values) {
  std::string packed;
  for (const int64_t value : values) packed += Varint(value);
  return FeatureEntry(name, MessageField(3, MessageField(1, packed)));
}

inline std::string ExampleOf(absl::string_view features) {
  return MessageField(1, features);
}

inline std::string TfRecord(absl::string_view bytes) {
  const std::string length = LittleEndianBytes(bytes.size(), 8);
  return absl::StrCat(length, LittleEndianBytes(MaskCrc(Crc32cOf(length)), 4),
                      bytes, LittleEndianBytes(MaskCrc(Crc32cOf(bytes)), 4));
}

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TESTING_TF_EXAMPLE_WRITER_H_

#include "storage/tensor_files/slice_key.h"

#include <bit>
#include <cstddef>
#include <cstdint>

#include "storage/byte_order.h"

namespace parasol {
namespace {

// The length of an axis that is taken whole.
constexpr int64_t kWhole = -1;

// A byte with the number of bytes that follow, then these, the highest first.
void AppendUnsigned(uint64_t value, std::string& key) {
  const int bytes = (std::bit_width(value) + 7) / 8;
  key.push_back(static_cast<char>(bytes));
  for (int i = bytes - 1; i >= 0; --i) {
    key.push_back(static_cast<char>(value >> (8 * i)));
  }
}

// Two's complement, the highest byte first, in as few bytes as hold the number
// and one more bit for each of them. The first bits say how many these are: as
// many ones as bytes, then a zero, all inverted if the number is negative.
void AppendSigned(int64_t value, std::string& key) {
  constexpr int kMostBytes = 10;
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  const int bytes = std::bit_width(magnitude) / 7 + 1;
  std::string digits(2, value < 0 ? '\xff' : '\0');
  AppendBigEndian(digits, static_cast<uint64_t>(value));
  digits.erase(0, kMostBytes - bytes);
  const uint32_t header = 0xffff0000u >> bytes & 0xffff;
  digits[0] = static_cast<char>(digits[0] ^ static_cast<char>(header >> 8));
  if (bytes > 1) {
    digits[1] = static_cast<char>(digits[1] ^ static_cast<char>(header));
  }
  key += digits;
}

// The bytes, with 00 written as 00 ff and ff as ff 00, then 00 01.
void AppendString(absl::string_view text, std::string& key) {
  for (const char c : text) {
    key.push_back(c);
    if (c == '\0') key.push_back('\xff');
    if (c == '\xff') key.push_back('\0');
  }
  key.push_back('\0');
  key.push_back('\1');
}

}  // namespace

std::string SliceKey(absl::string_view tensor,
                     const tensor_bundle::TensorSliceProto& slice) {
  std::string key;
  AppendUnsigned(0, key);
  AppendString(tensor, key);
  AppendUnsigned(static_cast<uint64_t>(slice.extent_size()), key);
  for (const auto& extent : slice.extent()) {
    const bool is_whole =
        extent.has_length_case() ==
        tensor_bundle::TensorSliceProto::Extent::HAS_LENGTH_NOT_SET;
    AppendSigned(extent.start(), key);
    AppendSigned(is_whole ? kWhole : extent.length(), key);
  }
  return key;
}

}  // namespace parasol

#ifndef PARASOL_TESTS_FUZZ_READERS_INPUT_BYTES_H_
#define PARASOL_TESTS_FUZZ_READERS_INPUT_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace parasol {

// The parts of a fuzzer's input, taken from its front. What is missing is 0 or
// empty.
class InputBytes {
 public:
  explicit InputBytes(absl::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  absl::string_view rest() const { return rest_; }

  uint8_t Byte() {
    const absl::string_view byte = Take(1);
    return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
  }
  uint16_t Short() {
    const uint16_t low = Byte();
    return static_cast<uint16_t>(low | Byte() << 8);
  }
  absl::string_view Take(size_t count) {
    const absl::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // Takes bytes with their number, two bytes, in front.
  absl::string_view Counted() { return Take(Short()); }

  // Returns the two bytes that Short() takes, and what Counted() takes.
  static std::string OfShort(size_t number) {
    return {static_cast<char>(number), static_cast<char>(number >> 8)};
  }
  static std::string OfCounted(absl::string_view bytes) {
    bytes = bytes.substr(0, UINT16_MAX);
    return absl::StrCat(OfShort(bytes.size()), bytes);
  }

 private:
  absl::string_view rest_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_READERS_INPUT_BYTES_H_

// A libFuzzer target, started by tests/fuzz/run (ReplyTarget::InputOf).

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "tests/fuzz/reply_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = parasol::ReplyTarget::InputOf(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  parasol::ReplyTarget::Feed(input.bytes, input.piece_bytes);
  return 0;
}

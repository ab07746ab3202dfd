// A libFuzzer target, started by tests/fuzz/run. The first byte says where the
// pieces of the message end.

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "tests/fuzz/exchange_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const target = new parasol::ExchangeTarget;
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1),
                                size - 1);
  target->Feed(bytes, 1 + data[0]);
  return 0;
}

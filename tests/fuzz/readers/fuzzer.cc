// FuzzTargets() as a program of libFuzzer's, started by tests/fuzz/run:
//
//   fuzzer --target=NAME [flag of libFuzzer]... [folder or file]...

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tests/fuzz/readers/fuzz_target.h"

namespace {

const std::vector<parasol::FuzzTarget>& Targets() {
  static const auto* const targets =
      new std::vector<parasol::FuzzTarget>(parasol::FuzzTargets());
  return *targets;
}

const parasol::FuzzTarget* chosen = nullptr;

}  // namespace

// libFuzzer leaves flags with two hyphens to the program.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  absl::string_view name;
  for (int i = 1; i < *argc; ++i) {
    absl::string_view flag = (*argv)[i];
    if (absl::ConsumePrefix(&flag, "--target=")) name = flag;
  }
  for (const parasol::FuzzTarget& target : Targets()) {
    if (target.name == name) chosen = &target;
  }
  if (chosen != nullptr) return 0;
  std::cerr << "fuzzer: --target=" << name << " is none of\n";
  for (const parasol::FuzzTarget& target : Targets()) {
    std::cerr << "  " << target.name << "\n";
  }
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->feed(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}

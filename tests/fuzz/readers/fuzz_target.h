#ifndef PARASOL_TESTS_FUZZ_READERS_FUZZ_TARGET_H_
#define PARASOL_TESTS_FUZZ_READERS_FUZZ_TARGET_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace parasol {

// A reader of bytes that come from outside: a file, a network, an environment.
struct FuzzTarget {
  std::string name;
  // Has the reader read the input. Ends the process when what it says
  // contradicts itself.
  std::function<void(absl::string_view input)> feed;
  // Inputs that the reader takes, from which fuzzing starts.
  std::function<std::vector<std::string>()> seeds;
};

// Returns what the program fuzzes that this is a part of, each with a name of
// its own.
std::vector<FuzzTarget> FuzzTargets();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_READERS_FUZZ_TARGET_H_

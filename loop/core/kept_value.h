#ifndef PARASOL_LOOP_CORE_KEPT_VALUE_H_
#define PARASOL_LOOP_CORE_KEPT_VALUE_H_

#include <string>

#include "absl/types/span.h"

namespace parasol::loop {

// Memory of a program's own that goes into checkpoints: a step counter, a
// running mean, the place in a data set. All processes have the same in it at
// the end of each iteration.
struct KeptValue {
  std::string name;
  // Outlives the program's last iteration.
  absl::Span<char> bytes;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_KEPT_VALUE_H_

#include "tests/fuzz/line_targets.h"
#include "tests/fuzz/network_targets.h"
#include "tests/fuzz/readers/fuzz_target.h"

namespace parasol {

std::vector<FuzzTarget> FuzzTargets() {
  std::vector<FuzzTarget> targets = NetworkTargets();
  for (FuzzTarget& target : LineTargets()) targets.push_back(target);
  return targets;
}

}  // namespace parasol

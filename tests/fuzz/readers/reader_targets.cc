#include "tests/fuzz/readers/checkpoint_targets.h"
#include "tests/fuzz/readers/data_targets.h"
#include "tests/fuzz/readers/fuzz_target.h"
#include "tests/fuzz/readers/import_targets.h"
#include "tests/fuzz/readers/json_targets.h"
#include "tests/fuzz/readers/rank_targets.h"
#include "tests/fuzz/readers/uri_targets.h"

namespace parasol {

std::vector<FuzzTarget> FuzzTargets() {
  std::vector<FuzzTarget> targets;
  for (const auto& some : {RankTargets(), ImportTargets(), DataTargets(),
                           JsonTargets(), CheckpointTargets(), UriTargets()}) {
    targets.insert(targets.end(), some.begin(), some.end());
  }
  return targets;
}

}  // namespace parasol

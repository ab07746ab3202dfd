#include "base/version.h"

// Defined by //base:version_stamp, where that is linked.
extern "C" __attribute__((weak)) const char* ParasolStampedCommit();

namespace parasol {

std::string BuildCommit() {
  return ParasolStampedCommit == nullptr ? "unknown" : ParasolStampedCommit();
}

}  // namespace parasol

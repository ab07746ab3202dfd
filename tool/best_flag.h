#ifndef PARASOL_TOOL_BEST_FLAG_H_
#define PARASOL_TOOL_BEST_FLAG_H_

#include <string>

#include "absl/flags/declare.h"

// --best, a flag of the commands that use a checkpoint.
ABSL_DECLARE_FLAG(bool, best);

namespace parasol {

// Returns the path of the checkpoint that a command line means which names
// `path`: with --best the name BEST in that directory, otherwise `path`.
std::string CheckpointByFlag(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_TOOL_BEST_FLAG_H_

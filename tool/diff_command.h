#ifndef PARASOL_TOOL_DIFF_COMMAND_H_
#define PARASOL_TOOL_DIFF_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// Returns `parasol diff A B`.
Command DiffCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_DIFF_COMMAND_H_

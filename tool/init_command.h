#ifndef PARASOL_TOOL_INIT_COMMAND_H_
#define PARASOL_TOOL_INIT_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// Returns `parasol init TABLE`: a first job for a table.
Command InitCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_INIT_COMMAND_H_

#ifndef PARASOL_TOOL_IMPORT_COMMAND_H_
#define PARASOL_TOOL_IMPORT_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// Returns `parasol import PATH`.
Command ImportCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_IMPORT_COMMAND_H_

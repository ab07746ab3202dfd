#ifndef PARASOL_TOOL_INSPECT_COMMAND_H_
#define PARASOL_TOOL_INSPECT_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// Returns `parasol inspect CKPT`.
Command InspectCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_INSPECT_COMMAND_H_

#ifndef PARASOL_TOOL_EXPORT_COMMAND_H_
#define PARASOL_TOOL_EXPORT_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// Returns `parasol export CKPT`.
Command ExportCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_EXPORT_COMMAND_H_

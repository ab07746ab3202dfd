#ifndef PARASOL_TOOL_SERVE_COMMAND_H_
#define PARASOL_TOOL_SERVE_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// Returns `parasol serve CKPT_DIR`.
Command ServeCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_SERVE_COMMAND_H_

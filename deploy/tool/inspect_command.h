#ifndef PARASOL_DEPLOY_TOOL_INSPECT_COMMAND_H_
#define PARASOL_DEPLOY_TOOL_INSPECT_COMMAND_H_

#include "deploy/tool/command.h"

namespace parasol {

// Returns `parasol inspect CKPT`.
Command InspectCommand();

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_INSPECT_COMMAND_H_

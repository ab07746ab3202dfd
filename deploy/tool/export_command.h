#ifndef PARASOL_DEPLOY_TOOL_EXPORT_COMMAND_H_
#define PARASOL_DEPLOY_TOOL_EXPORT_COMMAND_H_

#include "deploy/tool/command.h"

namespace parasol {

// Returns `parasol export CKPT`.
Command ExportCommand();

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_EXPORT_COMMAND_H_

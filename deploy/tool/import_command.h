#ifndef PARASOL_DEPLOY_TOOL_IMPORT_COMMAND_H_
#define PARASOL_DEPLOY_TOOL_IMPORT_COMMAND_H_

#include "deploy/tool/command.h"

namespace parasol {

// Returns `parasol import PATH`.
Command ImportCommand();

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_IMPORT_COMMAND_H_

#ifndef PARASOL_DEPLOY_TOOL_DIFF_COMMAND_H_
#define PARASOL_DEPLOY_TOOL_DIFF_COMMAND_H_

#include "deploy/tool/command.h"

namespace parasol {

// Returns `parasol diff A B`.
Command DiffCommand();

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_DIFF_COMMAND_H_

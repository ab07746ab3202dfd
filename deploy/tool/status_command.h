#ifndef PARASOL_DEPLOY_TOOL_STATUS_COMMAND_H_
#define PARASOL_DEPLOY_TOOL_STATUS_COMMAND_H_

#include "deploy/tool/command.h"

namespace parasol {

// `parasol status CHIEF`: what a chief says of its job.
Command StatusCommand();

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_STATUS_COMMAND_H_

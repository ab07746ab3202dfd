#ifndef PARASOL_DEPLOY_TOOL_EVALUATE_COMMAND_H_
#define PARASOL_DEPLOY_TOOL_EVALUATE_COMMAND_H_

#include "deploy/tool/command.h"

namespace parasol {

// Returns `parasol evaluate CKPT`.
Command EvaluateCommand();

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_EVALUATE_COMMAND_H_

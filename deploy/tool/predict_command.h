#ifndef PARASOL_DEPLOY_TOOL_PREDICT_COMMAND_H_
#define PARASOL_DEPLOY_TOOL_PREDICT_COMMAND_H_

#include "deploy/tool/command.h"

namespace parasol {

// Returns `parasol predict CKPT`.
Command PredictCommand();

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_PREDICT_COMMAND_H_

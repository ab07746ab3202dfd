#ifndef PARASOL_TOOL_PREDICT_COMMAND_H_
#define PARASOL_TOOL_PREDICT_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// Returns `parasol predict CKPT`.
Command PredictCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_PREDICT_COMMAND_H_

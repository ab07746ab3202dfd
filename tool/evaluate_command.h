#ifndef PARASOL_TOOL_EVALUATE_COMMAND_H_
#define PARASOL_TOOL_EVALUATE_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// Returns `parasol evaluate CKPT`.
Command EvaluateCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_EVALUATE_COMMAND_H_

#ifndef PARASOL_TOOL_STATUS_COMMAND_H_
#define PARASOL_TOOL_STATUS_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// `parasol status CHIEF`: what a chief says of its job.
Command StatusCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_STATUS_COMMAND_H_

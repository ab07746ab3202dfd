#ifndef PARASOL_TOOL_WHY_COMMAND_H_
#define PARASOL_TOOL_WHY_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// `parasol why CHIEF`: what bounds a job now.
Command WhyCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_WHY_COMMAND_H_

#ifndef PARASOL_TOOL_CHECK_COMMAND_H_
#define PARASOL_TOOL_CHECK_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// `parasol check JOB`: the faults of a job and its data, all at once.
Command CheckCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECK_COMMAND_H_

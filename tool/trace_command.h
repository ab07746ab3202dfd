#ifndef PARASOL_TOOL_TRACE_COMMAND_H_
#define PARASOL_TOOL_TRACE_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// `parasol trace CHIEF`: what all tasks do for some steps, as a file that
// Perfetto opens.
Command TraceCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_TRACE_COMMAND_H_

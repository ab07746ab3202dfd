#ifndef PARASOL_TOOL_PUBLISH_COMMAND_H_
#define PARASOL_TOOL_PUBLISH_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// Returns `parasol publish CKPT`.
Command PublishCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_PUBLISH_COMMAND_H_

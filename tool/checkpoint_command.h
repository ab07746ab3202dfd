#ifndef PARASOL_TOOL_CHECKPOINT_COMMAND_H_
#define PARASOL_TOOL_CHECKPOINT_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// Returns `parasol checkpoint ls|verify|show CKPT`.
Command CheckpointCommand();
// Returns `parasol inspect CKPT`, short for `parasol checkpoint show CKPT`.
Command InspectCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECKPOINT_COMMAND_H_

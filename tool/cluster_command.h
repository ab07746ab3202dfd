#ifndef PARASOL_TOOL_CLUSTER_COMMAND_H_
#define PARASOL_TOOL_CLUSTER_COMMAND_H_

#include "tool/command.h"

namespace parasol {

// Returns the command that prints TF_CONFIG for the process it runs in.
Command ClusterCommand();

}  // namespace parasol

#endif  // PARASOL_TOOL_CLUSTER_COMMAND_H_

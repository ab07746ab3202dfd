#ifndef PARASOL_DEPLOY_TOOL_CHECK_COMMAND_H_
#define PARASOL_DEPLOY_TOOL_CHECK_COMMAND_H_

#include "deploy/tool/command.h"

namespace parasol {

// `parasol check JOB`: the faults of a job and its data, all at once.
Command CheckCommand();

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_CHECK_COMMAND_H_

#ifndef PARASOL_TOOL_JOB_FLAGS_H_
#define PARASOL_TOOL_JOB_FLAGS_H_

#include "absl/flags/declare.h"
#include "base/command_line.h"

// --set, a flag of the commands that have a job.
ABSL_DECLARE_FLAG(parasol::RepeatedFlag, set);

#endif  // PARASOL_TOOL_JOB_FLAGS_H_

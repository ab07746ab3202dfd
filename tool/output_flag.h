#ifndef PARASOL_TOOL_OUTPUT_FLAG_H_
#define PARASOL_TOOL_OUTPUT_FLAG_H_

#include <string>

#include "absl/flags/declare.h"

// --output, a flag of the commands that write files.
ABSL_DECLARE_FLAG(std::string, output);

#endif  // PARASOL_TOOL_OUTPUT_FLAG_H_

#ifndef PARASOL_TOOL_FORMAT_FLAG_H_
#define PARASOL_TOOL_FORMAT_FLAG_H_

#include <string>

#include "absl/flags/declare.h"

// --format, a flag of the commands that move tensors.
ABSL_DECLARE_FLAG(std::string, format);

#endif  // PARASOL_TOOL_FORMAT_FLAG_H_

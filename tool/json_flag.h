#ifndef PARASOL_TOOL_JSON_FLAG_H_
#define PARASOL_TOOL_JSON_FLAG_H_

#include "absl/flags/declare.h"

// --json, a flag of several commands.
ABSL_DECLARE_FLAG(bool, json);

#endif  // PARASOL_TOOL_JSON_FLAG_H_

#ifndef PARASOL_TOOL_DATA_DIR_FLAG_H_
#define PARASOL_TOOL_DATA_DIR_FLAG_H_

#include <string>

#include "absl/flags/declare.h"

// --data_dir, a flag of the commands that read data.
ABSL_DECLARE_FLAG(std::string, data_dir);

#endif  // PARASOL_TOOL_DATA_DIR_FLAG_H_

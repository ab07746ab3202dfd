#ifndef PARASOL_TOOL_TESTING_RUN_TOOL_H_
#define PARASOL_TOOL_TESTING_RUN_TOOL_H_

#include <string>
#include <vector>

#include "base/subprocess.h"

namespace parasol {

// Runs a binary of the test's data, "worker/worker", to its end.
CompletedProcess RunBinary(const std::string& binary,
                           const std::vector<std::string>& arguments);

// Runs the tool `parasol`.
CompletedProcess RunTool(const std::vector<std::string>& arguments);

}  // namespace parasol

#endif  // PARASOL_TOOL_TESTING_RUN_TOOL_H_

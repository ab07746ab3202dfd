#ifndef PARASOL_TOOL_STATUS_WHY_TEXT_H_
#define PARASOL_TOOL_STATUS_WHY_TEXT_H_

#include <string>
#include <vector>

#include "proto/chief.pb.h"

namespace parasol {

// Returns one paragraph about what bounds a job, and who waits for whom since
// when, as its chief says.
std::string WhyText(const wire::JobStatus& status);

// Returns the stacks that tasks have shown, and names the tasks that have shown
// none. Pure.
std::string StacksText(const std::vector<wire::InspectedTask>& tasks,
                       const std::vector<std::string>& missing);

}  // namespace parasol

#endif  // PARASOL_TOOL_STATUS_WHY_TEXT_H_

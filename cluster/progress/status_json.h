#ifndef PARASOL_CLUSTER_PROGRESS_STATUS_JSON_H_
#define PARASOL_CLUSTER_PROGRESS_STATUS_JSON_H_

#include <string>

#include "nlohmann/json.hpp"
#include "proto/chief.pb.h"

namespace parasol {

// Returns a task's state in a word: "alive", "slow", "awaited", "missing" (the
// job waits for it) or "not there".
std::string StateOf(const wire::TaskStatus& task,
                    const wire::JobStatus& status);

// Returns a chief's answer about its job as JSON, for programs and pages. What
// is no number is null.
nlohmann::ordered_json StatusJson(const wire::JobStatus& status);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PROGRESS_STATUS_JSON_H_

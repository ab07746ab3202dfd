#ifndef PARASOL_CLUSTER_CHECK_IDLE_SETTINGS_H_
#define PARASOL_CLUSTER_CHECK_IDLE_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"

// Settings with which a job trains nothing, each as "<field path>: …". Pure.
namespace parasol {

// Returns the learning rates of `job` that are 0 as float32.
std::vector<std::string> ZeroRateWarnings(const job::Job& job);

// Returns the admissions of `model` that no id reaches. `most`: how often the
// most frequent id of each sparse table comes in an epoch; `epochs`: how often
// that is trained, rounded up.
std::vector<std::string> AdmissionWarnings(const job::Model& model,
                                           const std::vector<int64_t>& most,
                                           int64_t epochs);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_IDLE_SETTINGS_H_

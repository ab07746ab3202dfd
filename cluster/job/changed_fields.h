#ifndef PARASOL_CLUSTER_JOB_CHANGED_FIELDS_H_
#define PARASOL_CLUSTER_JOB_CHANGED_FIELDS_H_

#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace parasol {

// Returns the fields in which the jobs differ, each with both values, for logs
// and errors: "optimizer.sgd.learning_rate: 0.1 -> 0.01". At most
// kMaxChangedFields are named; the last entry says how many more there are.
// Empty if the jobs are the same.
inline constexpr size_t kMaxChangedFields = 16;
std::vector<std::string> ChangedFields(const job::Job& was, const job::Job& is);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_CHANGED_FIELDS_H_

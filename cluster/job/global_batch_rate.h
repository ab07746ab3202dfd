#ifndef PARASOL_CLUSTER_JOB_GLOBAL_BATCH_RATE_H_
#define PARASOL_CLUSTER_JOB_GLOBAL_BATCH_RATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks learning_rate_by_global_batch, if the optimizer has it.
//   InvalidArgument  names the field and the value.
absl::Status CheckGlobalBatchRates(const job::Optimizer& optimizer);

// Replaces learning_rate_by_global_batch, if the optimizer has it, by the
// learning_rate for steps of `replicas` replicas with `batch` examples each.
//   InvalidArgument  there is none for that many examples; names the numbers.
absl::Status SetRateOfGlobalBatch(int64_t batch, int replicas,
                                  job::Optimizer& optimizer);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_GLOBAL_BATCH_RATE_H_

#ifndef PARASOL_WORKER_LOCAL_MICRO_BATCHES_H_
#define PARASOL_WORKER_LOCAL_MICRO_BATCHES_H_

#include "proto/job.pb.h"

namespace parasol {

// Returns true if a replica of the job computes the gradient of a step in
// several passes. Defaults are filled in, and the number of replicas is known.
inline bool HasMicroBatches(const job::Job& job) {
  return job.train().has_micro_batch_size() &&
         job.train().micro_batch_size() < job.train().batch_size();
}

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_MICRO_BATCHES_H_

#ifndef PARASOL_CLUSTER_JOB_TASK_ELASTIC_WORKERS_H_
#define PARASOL_CLUSTER_JOB_TASK_ELASTIC_WORKERS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks that workers of `job`, without the defaults that depend on the
// cluster, may come and go as they like.
//   InvalidArgument  says which field stands against it: workers that have the
//                    variables or files of their own, that must not be lost, or
//                    a number of replicas that would be the number of listed
//                    workers.
absl::Status CheckElasticWorkers(const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_TASK_ELASTIC_WORKERS_H_

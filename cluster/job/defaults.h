#ifndef PARASOL_CLUSTER_JOB_DEFAULTS_H_
#define PARASOL_CLUSTER_JOB_DEFAULTS_H_

#include "proto/job.pb.h"

namespace parasol {

// Sets every field that is not set and has a default (docs/job.md), so that
// nobody behind it needs to know one. What has no default (a data set, the
// layers, the end) stays unset: Validate asks for it. May be applied twice.
void FillDefaults(job::Job& job);

// Those that depend on the cluster, of `workers` workers: how many replicas a
// synchronous step has. The chief applies it before anybody gets the job.
void FillClusterDefaults(job::Job& job, int workers);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_DEFAULTS_H_

#ifndef PARASOL_CLUSTER_JOB_DURABILITY_H_
#define PARASOL_CLUSTER_JOB_DURABILITY_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns true if the job's ps write pushes to journals.
bool KeepsJournals(const job::Job& job);

// Returns true if each shard of the job's ps has a standby on another one.
bool Replicates(const job::Job& job);

// Returns OK if a cluster with `num_ps` ps can keep what the job asks for.
//   InvalidArgument  it can't; the message names the field and what to do.
absl::Status CheckDurability(const job::Job& job, int num_ps);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_DURABILITY_H_

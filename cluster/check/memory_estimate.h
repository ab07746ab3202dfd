#ifndef PARASOL_CLUSTER_CHECK_MEMORY_ESTIMATE_H_
#define PARASOL_CLUSTER_CHECK_MEMORY_ESTIMATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/check/job_report.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

struct MemoryOptions {
  int ps = 1;  // 0: the job is trained without any
  // Number of rows of each table, in the order of the graph's.
  std::vector<int64_t> rows = {};
  // Bytes that the data sets take in memory.
  int64_t data_bytes = 0;
};

// Returns what each role holds of `job`, whose defaults are filled in and whose
// model is `graph`: of each ps the parts that it would be given, with their
// slots, and its share of the rows; of a worker values and gradients, the
// memory of a pass over one batch, these for each device that the job lists,
// and the data; of a worker without a cluster
// the slots and rows as well. Programs, threads and buffers of the network come
// on top.
//   InvalidArgument  the job can't be placed.
absl::StatusOr<std::vector<RoleMemory>> EstimateMemory(
    const job::Job& job, const Graph& graph, const MemoryOptions& options);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_MEMORY_ESTIMATE_H_

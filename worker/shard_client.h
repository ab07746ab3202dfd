#ifndef PARASOL_WORKER_SHARD_CLIENT_H_
#define PARASOL_WORKER_SHARD_CLIENT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/client/parameter_client.h"
#include "ml/layer/variable_spec.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the client of a worker for the ps of `placement`, as the job's
// settings say: of `variables` and of the job's sparse tables; under the hybrid
// strategy of the tables alone. `incarnation` is the worker's, `shard_timeout`
// as in ParameterClient::Options. Errors are those of
// ParameterClient::Create().
absl::StatusOr<std::unique_ptr<ParameterClient>> MakeShardClient(
    const wire::GetPlacementResponse& placement,
    const std::vector<VariableSpec>& variables, const job::Job& job,
    uint64_t incarnation, absl::Duration shard_timeout, Clock& clock,
    MetricsRegistry& metrics);

}  // namespace parasol

#endif  // PARASOL_WORKER_SHARD_CLIENT_H_

#include "worker/shard_client.h"

#include <string>
#include <utility>

#include "cluster/job/strategy.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<ParameterClient>> MakeShardClient(
    const wire::GetPlacementResponse& placement,
    const std::vector<VariableSpec>& variables, const job::Job& job,
    uint64_t incarnation, absl::Duration shard_timeout, Clock& clock,
    MetricsRegistry& metrics) {
  ParameterClient::Options options;
  options.worker_incarnation = incarnation;
  options.shard_timeout = shard_timeout;
  options.wire_encoding = job.parameter_server().wire_encoding();
  options.push_share = job.parameter_server().push_share();
  const job::WorkerSettings::PayloadLanes lanes = job.worker().payload_lanes();
  options.shared_memory = lanes == job::WorkerSettings::AUTO ||
                          lanes == job::WorkerSettings::SHARED_MEMORY;
  options.tcp_lanes =
      lanes == job::WorkerSettings::AUTO || lanes == job::WorkerSettings::TCP;
  std::vector<std::string> names;
  if (!IsHybrid(job)) {
    for (const VariableSpec& variable : variables) {
      names.push_back(variable.name);
    }
  }
  std::vector<std::string> tables;
  for (const job::SparseTable& table : job.model().sparse_table()) {
    tables.push_back(table.name());
  }
  return ParameterClient::Create(placement, std::move(names), std::move(tables),
                                 options, clock, metrics);
}

}  // namespace parasol

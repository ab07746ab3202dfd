#include "cluster/cluster_spec/cluster_spec.h"

namespace parasol {

absl::string_view RoleName(Role role) {
  switch (role) {
    case Role::kPs:
      return "ps";
    case Role::kWorker:
      return "worker";
    case Role::kChief:
      return "chief";
    case Role::kEvaluator:
      return "evaluator";
  }
  return "";
}

std::optional<Role> RoleNamed(absl::string_view name) {
  for (const Role role :
       {Role::kPs, Role::kWorker, Role::kChief, Role::kEvaluator}) {
    if (RoleName(role) == name) return role;
  }
  return std::nullopt;
}

absl::string_view StrategyName(StrategyKind strategy) {
  switch (strategy) {
    case StrategyKind::kParameterServer:
      return "parameter_server";
    case StrategyKind::kMultiWorkerMirrored:
      return "multi_worker_mirrored";
  }
  return "";
}

std::optional<StrategyKind> StrategyNamed(absl::string_view name) {
  for (const StrategyKind strategy :
       {StrategyKind::kParameterServer, StrategyKind::kMultiWorkerMirrored}) {
    if (StrategyName(strategy) == name) return strategy;
  }
  return std::nullopt;
}

const std::map<int, std::string>& ClusterSpec::tasks(Role role) const {
  static const auto& none = *new std::map<int, std::string>();
  const auto found = jobs.find(role);
  return found == jobs.end() ? none : found->second;
}

int ClusterSpec::num_tasks(Role role) const {
  return static_cast<int>(tasks(role).size());
}

}  // namespace parasol

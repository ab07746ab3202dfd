#include "cluster/cluster_spec/cluster_spec.h"

#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

constexpr std::pair<StrategyKind, absl::string_view> kStrategies[] = {
    {StrategyKind::kParameterServer, "parameter_server"},
    {StrategyKind::kMultiWorkerMirrored, "multi_worker_mirrored"},
    {StrategyKind::kHybrid, "hybrid"},
    {StrategyKind::kDefault, "default"},
    {StrategyKind::kOneDevice, "one_device"},
    {StrategyKind::kMirrored, "mirrored"},
    {StrategyKind::kCentralStorage, "central_storage"},
};

}  // namespace

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
  for (const auto& [kind, name] : kStrategies) {
    if (kind == strategy) return name;
  }
  return "";
}

std::optional<StrategyKind> StrategyNamed(absl::string_view name) {
  for (const auto& [kind, known] : kStrategies) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

std::string StrategyNames() {
  std::string names;
  for (size_t i = 0; i < std::size(kStrategies); ++i) {
    const bool is_last = i + 1 == std::size(kStrategies);
    absl::StrAppend(&names,
                    i == 0    ? ""
                    : is_last ? " or "
                              : ", ",
                    kStrategies[i].second);
  }
  return names;
}

bool IsLocal(StrategyKind strategy) {
  return strategy != StrategyKind::kParameterServer &&
         strategy != StrategyKind::kMultiWorkerMirrored &&
         strategy != StrategyKind::kHybrid;
}

StrategyKind StrategyOfCluster(int num_ps) {
  return num_ps == 0 ? StrategyKind::kMultiWorkerMirrored
                     : StrategyKind::kParameterServer;
}

int StatePlace(const std::map<int, std::string>& ps) {
  return ps.empty() ? 0 : ps.rbegin()->first + 1;
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

#include "deploy/resolver/resolved_task.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/tf_config.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

struct Task {
  Role role = Role::kWorker;
  int index = 0;
};

absl::Status CheckWishes(const ClusterWishes& wishes) {
  if (wishes.num_ps < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--ps=", wishes.num_ps, ": give 0 or more"));
  }
  if (wishes.num_workers.value_or(0) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--workers=", *wishes.num_workers, ": give 0 or more"));
  }
  if (wishes.base_port < 1 || wishes.base_port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--base_port=", wishes.base_port, ": give a port, 1 to 65535"));
  }
  return absl::OkStatus();
}

// "--chief --ps=2", as the user has given them.
std::string Flags(const ClusterWishes& wishes) {
  std::vector<std::string> flags;
  if (wishes.chief) flags.push_back("--chief");
  if (wishes.evaluator) flags.push_back("--evaluator");
  if (wishes.num_ps > 0) flags.push_back(absl::StrCat("--ps=", wishes.num_ps));
  if (wishes.num_workers.has_value()) {
    flags.push_back(absl::StrCat("--workers=", *wishes.num_workers));
  }
  return absl::StrJoin(flags, " ");
}

// The tasks by rank.
absl::StatusOr<std::vector<Task>> TasksByRank(const ProcessPlaces& places,
                                              const ClusterWishes& wishes) {
  RETURN_IF_ERROR(CheckWishes(wishes));
  const int64_t others = int64_t{wishes.chief} + int64_t{wishes.evaluator} +
                         int64_t{wishes.num_ps};
  const int64_t workers = wishes.num_workers.has_value()
                              ? *wishes.num_workers
                              : std::max<int64_t>(places.size() - others, 0);
  if (others + workers != places.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Flags(wishes), ": ", others + workers, " tasks, but ",
                     places.size_source, " gives ", places.size(),
                     " processes; change one of them"));
  }
  std::vector<Task> tasks;
  const auto add = [&tasks](Role role, int64_t count) {
    for (int i = 0; i < count; ++i) tasks.push_back({role, i});
  };
  add(Role::kChief, wishes.chief);
  add(Role::kEvaluator, wishes.evaluator);
  add(Role::kPs, wishes.num_ps);
  add(Role::kWorker, workers);
  return tasks;
}

// The addresses by rank.
std::vector<std::string> Addresses(const ProcessPlaces& places, int base_port) {
  std::vector<std::string> addresses;
  for (const Host& host : places.hosts) {
    for (int i = 0; i < host.slots; ++i) {
      addresses.push_back(absl::StrCat(host.name, ":", base_port + i));
    }
  }
  return addresses;
}

StrategyKind StrategyOf(const ClusterWishes& wishes) {
  return wishes.strategy.value_or(wishes.num_ps > 0
                                      ? StrategyKind::kParameterServer
                                      : StrategyKind::kMultiWorkerMirrored);
}

}  // namespace

absl::StatusOr<ResolvedTask> ResolveTask(const ProcessPlaces& places,
                                         const ClusterWishes& wishes) {
  ASSIGN_OR_RETURN(const std::vector<Task> tasks, TasksByRank(places, wishes));
  const std::vector<std::string> addresses =
      Addresses(places, wishes.base_port);
  Json cluster = Json::object();
  for (size_t rank = 0; rank < tasks.size(); ++rank) {
    cluster[std::string(RoleName(tasks[rank].role))].push_back(addresses[rank]);
  }
  const Task& own = tasks[places.rank];
  ResolvedTask task = {.role = own.role, .index = own.index};
  // A host's name may be any bytes; the parser refuses those that are no name.
  const auto text = [](const Json& json) {
    return json.dump(-1, ' ', /*ensure_ascii=*/true,
                     Json::error_handler_t::replace);
  };
  task.cluster = text(cluster);
  task.tf_config =
      text({{"cluster", cluster},
            {"task", {{"type", RoleName(own.role)}, {"index", own.index}}}});
  RETURN_IF_ERROR(
      ParseTfConfig(task.tf_config, own.role, StrategyOf(wishes)).status());
  return task;
}

absl::StatusOr<int> RankOfTask(absl::string_view task,
                               const ProcessPlaces& places,
                               const ClusterWishes& wishes) {
  ASSIGN_OR_RETURN(const std::vector<Task> tasks, TasksByRank(places, wishes));
  for (size_t rank = 0; rank < tasks.size(); ++rank) {
    if (absl::StrCat(RoleName(tasks[rank].role), "/", tasks[rank].index) ==
        task) {
      return static_cast<int>(rank);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--task=", Quoted(task),
                   ": the cluster has no such task; it is a role "
                   "and an index, as in worker/1"));
}

}  // namespace parasol

#include "deploy/local/host_tasks.h"

#include <cstddef>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "deploy/remote/remote_command.h"
#include "deploy/resolver/hosts.h"

namespace parasol {
namespace {

constexpr int kHighestPort = 65535;

// The hosts' names, each as often as it has slots.
std::vector<std::string> Turns(const std::vector<Host>& hosts) {
  std::vector<std::string> turns;
  for (const Host& host : hosts) {
    turns.insert(turns.end(), host.slots, host.name);
  }
  return turns;
}

// The host of each task of TaskRoles().
std::vector<std::string> HostsOfTasks(const LocalJob& job) {
  const std::vector<std::string> turns = Turns(job.hosts);
  std::map<std::string, size_t> next_turn;
  std::vector<std::string> hosts;
  for (const std::string& role : TaskRoles(job)) {
    hosts.push_back(turns[next_turn[role]++ % turns.size()]);
  }
  return hosts;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> AddressesOnHosts(const LocalJob& job) {
  const std::vector<std::string> roles = TaskRoles(job);
  const std::vector<std::string> hosts = HostsOfTasks(job);
  std::map<std::string, int> next_port;
  std::vector<std::string> addresses;
  std::vector<std::string> metrics;
  for (size_t i = 0; i < roles.size(); ++i) {
    int& port = next_port.try_emplace(hosts[i], job.base_port).first->second;
    if (port + 1 > kHighestPort) {
      return absl::InvalidArgumentError(
          absl::StrCat("--base_port=", job.base_port, ": ", hosts[i],
                       " has more tasks than there are pairs of ports up to ",
                       kHighestPort, "; give a smaller port, or more hosts"));
    }
    if (roles[i] != "evaluator") {
      addresses.push_back(absl::StrCat(hosts[i], ":", port));
    }
    metrics.push_back(absl::StrCat(hosts[i], ":", port + 1));
    port += 2;
  }
  addresses.insert(addresses.end(), metrics.begin(), metrics.end());
  return addresses;
}

void StartOnHosts(const LocalJob& job, const std::string& token,
                  std::vector<TaskPlan>& tasks) {
  for (TaskPlan& task : tasks) {
    const std::string& address = task.metrics_address;
    task.argv = SshArgv(
        {.ssh = job.ssh,
         .host = address.substr(0, address.rfind(':')),
         .guard = absl::StrCat(job.bin_dir, "/deploy/remote/remote_task"),
         .tf_config = task.tf_config,
         .argv = std::move(task.argv)});
    task.is_remote = true;
    task.first_input = absl::StrCat(token, "\n");
  }
}

}  // namespace parasol

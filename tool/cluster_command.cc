#include "tool/cluster_command.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/role_flags.h"
#include "deploy/resolver/hosts.h"
#include "deploy/resolver/process_places.h"
#include "deploy/resolver/resolved_task.h"
#include "tool/cluster_size_flags.h"

ABSL_FLAG(std::string, from, "",
          "Who started the processes: slurm (srun), openmpi (mpirun) or hosts "
          "(nobody that says so: with --hosts and --task).");
ABSL_FLAG(std::string, hosts, "",
          "The machines, in the order of their processes: a,b:2,c has one "
          "process on a, two on b and one on c.");
ABSL_FLAG(std::string, hostfile, "",
          "The same as a file of Open MPI, with lines like b slots=2.");
ABSL_FLAG(bool, chief, false, "Give process 0 to a chief.");
ABSL_FLAG(bool, evaluator, false,
          "Give the process after the chief's to an evaluator.");
ABSL_FLAG(int32_t, base_port, 8888,
          "Port of each machine's first process; the next ones follow.");
ABSL_FLAG(std::string, print, "tf_config",
          "tf_config; role: the name of the binary to start; or cluster: the "
          "file for --cluster_spec.");

extern char** environ;

namespace parasol {
namespace {

constexpr char kClusterUsage[] =
    "Prints TF_CONFIG for the process that it runs in, from the variables of "
    "Slurm or Open MPI or from a list of hosts. Roles are given out as "
    "TensorFlow's SlurmClusterResolver does: process 0 is the chief if there "
    "is one, then come the evaluator, the ps and the workers.\n"
    "\n"
    "  TF_CONFIG=$(parasol cluster --from=slurm|openmpi|hosts ...) || exit\n"
    "\n"
    "  parasol cluster --from=slurm --ps=2 --chief\n"
    "  parasol cluster --from=openmpi --hosts=a:2,b:2\n"
    "  parasol cluster --from=hosts --hosts=a,b:2,c --ps=1 --task=worker/1\n"
    "  parasol cluster --from=slurm --ps=2 --chief --print=role\n"
    "\n"
    "Exit code: 0 done; 2 a variable, a flag or the cluster is wrong.";

// A hostfile with kMaxProcesses lines of names is smaller.
constexpr size_t kMaxHostfileBytes = 16 << 20;

// This process's variables that a starter of processes may have set.
Variables StartersVariables() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) continue;
    if (absl::StartsWith(text, "SLURM_") || absl::StartsWith(text, "OMPI_")) {
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return variables;
}

absl::StatusOr<std::vector<Host>> HostsOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxHostfileBytes + 1, '\0');
  // A directory opens, but can't be read.
  if (!file || (file.read(text.data(), text.size()), file.bad())) {
    return absl::InvalidArgumentError(
        "can't be read; name a file that this process can read");
  }
  text.resize(file.gcount());
  if (text.size() > kMaxHostfileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has more than ", kMaxHostfileBytes, " bytes; name a hostfile"));
  }
  return ParseHostfile(text);
}

absl::StatusOr<std::vector<Host>> HostsByFlags() {
  const std::string list = absl::GetFlag(FLAGS_hosts);
  const std::string path = absl::GetFlag(FLAGS_hostfile);
  if (list.empty() == path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--from=", absl::GetFlag(FLAGS_from),
                     ": give either --hosts=a,b:2 or "
                     "--hostfile=FILE, with the machines of all processes"));
  }
  std::vector<Host> hosts;
  if (path.empty()) {
    ASSIGN_OR_RETURN(hosts, ParseHosts(list), _ << "--hosts");
  } else {
    ASSIGN_OR_RETURN(hosts, HostsOfFile(path), _ << "--hostfile=" << path);
  }
  return hosts;
}

absl::StatusOr<ProcessPlaces> PlacesFromHosts(const ClusterWishes& wishes) {
  const std::string task = absl::GetFlag(FLAGS_task);
  if (task.empty()) {
    return absl::InvalidArgumentError(
        "--task is missing: with --from=hosts it says which task this is, as "
        "worker/1");
  }
  ProcessPlaces places;
  ASSIGN_OR_RETURN(places.hosts, HostsByFlags());
  places.size_source = "the list of hosts";
  ASSIGN_OR_RETURN(places.rank, RankOfTask(task, places, wishes));
  return places;
}

absl::StatusOr<ProcessPlaces> PlacesByFlags(const ClusterWishes& wishes) {
  const std::string from = absl::GetFlag(FLAGS_from);
  if (from == "hosts") return PlacesFromHosts(wishes);
  if (!absl::GetFlag(FLAGS_task).empty()) {
    return absl::InvalidArgumentError(
        "--task: only --from=hosts has it; the variables say which process "
        "this is");
  }
  if (from == "openmpi") {
    ASSIGN_OR_RETURN(std::vector<Host> hosts, HostsByFlags());
    return PlacesFromOpenMpi(StartersVariables(), std::move(hosts));
  }
  if (from != "slurm") {
    return absl::InvalidArgumentError(
        absl::StrCat("--from=", from, ": give slurm, openmpi or hosts"));
  }
  if (!absl::GetFlag(FLAGS_hosts).empty() ||
      !absl::GetFlag(FLAGS_hostfile).empty()) {
    return absl::InvalidArgumentError(
        "--hosts, --hostfile: not with --from=slurm, whose variables have the "
        "hosts");
  }
  return PlacesFromSlurm(StartersVariables());
}

ClusterWishes WishesByFlags() {
  return {.chief = absl::GetFlag(FLAGS_chief),
          .evaluator = absl::GetFlag(FLAGS_evaluator),
          .num_ps = absl::GetFlag(FLAGS_ps),
          .num_workers = absl::GetFlag(FLAGS_workers),
          .base_port = absl::GetFlag(FLAGS_base_port),
          .strategy = absl::GetFlag(FLAGS_strategy)};
}

absl::StatusOr<std::string> PrintedBy(const ResolvedTask& task) {
  const std::string print = absl::GetFlag(FLAGS_print);
  if (print == "tf_config") return task.tf_config;
  if (print == "role") return std::string(RoleName(task.role));
  if (print == "cluster") return task.cluster;
  return absl::InvalidArgumentError(
      absl::StrCat("--print=", print, ": give tf_config, role or cluster"));
}

absl::Status RunCluster(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 0, ""));
  const ClusterWishes wishes = WishesByFlags();
  ASSIGN_OR_RETURN(const ProcessPlaces places, PlacesByFlags(wishes));
  ASSIGN_OR_RETURN(const ResolvedTask task, ResolveTask(places, wishes));
  ASSIGN_OR_RETURN(const std::string line, PrintedBy(task));
  std::printf("%s\n", line.c_str());
  return absl::OkStatus();
}

}  // namespace

Command ClusterCommand() {
  return {.name = "cluster",
          .summary = "prints TF_CONFIG from Slurm, Open MPI or a list of hosts",
          .usage = kClusterUsage,
          .flags = {"from", "hosts", "hostfile", "task", "ps", "workers",
                    "chief", "evaluator", "base_port", "strategy", "print"},
          .run = [](const std::vector<std::string>& arguments) {
            return ExitWith(RunCluster(arguments));
          }};
}

}  // namespace parasol

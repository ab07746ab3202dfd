#include "deploy/resolver/process_places.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "deploy/resolver/slurm_expressions.h"

namespace parasol {
namespace {

struct Variable {
  std::string name;
  std::string value;

  std::string text() const { return absl::StrCat(name, "=", Quoted(value)); }
};

std::optional<Variable> Find(const Variables& variables,
                             std::initializer_list<absl::string_view> names) {
  for (const absl::string_view name : names) {
    const auto found = variables.find(name);
    if (found != variables.end() && !found->second.empty()) {
      return Variable{found->first, found->second};
    }
  }
  return std::nullopt;
}

// The first one of `names` that is set.
absl::StatusOr<Variable> Require(const Variables& variables,
                                 std::initializer_list<absl::string_view> names,
                                 absl::string_view starter) {
  std::optional<Variable> found = Find(variables, names);
  if (found.has_value()) return *std::move(found);
  return absl::InvalidArgumentError(
      absl::StrCat(*names.begin(), ": is not set; ", starter,
                   " sets it for the processes that it starts"));
}

absl::StatusOr<int> Number(const Variable& variable) {
  int number = 0;
  if (!std::all_of(variable.value.begin(), variable.value.end(),
                   absl::ascii_isdigit) ||
      !absl::SimpleAtoi(variable.value, &number)) {
    return absl::InvalidArgumentError(absl::StrCat(
        variable.text(), ": is not a number from 0 to 2147483647"));
  }
  return number;
}

absl::StatusOr<std::vector<Host>> SlurmHosts(const Variables& variables) {
  ASSIGN_OR_RETURN(
      const Variable nodes_variable,
      Require(variables,
              {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"},
              "srun"));
  ASSIGN_OR_RETURN(
      const Variable tasks_variable,
      Require(variables, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"},
              "srun"));
  ASSIGN_OR_RETURN(const std::vector<std::string> nodes,
                   ExpandNodeList(nodes_variable.value),
                   _ << nodes_variable.text());
  ASSIGN_OR_RETURN(const std::vector<int> tasks,
                   ExpandTasksPerNode(tasks_variable.value),
                   _ << tasks_variable.text());
  if (nodes.size() != tasks.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(tasks_variable.text(), ": is for ", tasks.size(),
                     " nodes, but ", nodes_variable.text(), " has ",
                     nodes.size(), "; set both for the same step"));
  }
  std::vector<Host> hosts;
  for (size_t i = 0; i < nodes.size(); ++i) {
    hosts.push_back({nodes[i], tasks[i]});
  }
  return hosts;
}

// Where the process of a rank is.
struct Place {
  int host = 0;
  int local_rank = 0;
};

Place PlaceOf(const std::vector<Host>& hosts, int rank) {
  Place place = {.host = 0, .local_rank = rank};
  while (place.local_rank >= hosts[place.host].slots) {
    place.local_rank -= hosts[place.host++].slots;
  }
  return place;
}

// An error if the variable is set and not `expected`.
absl::Status CheckNumberedByHost(const Variables& variables,
                                 absl::string_view name, int expected,
                                 const ProcessPlaces& places,
                                 absl::string_view advice) {
  const std::optional<Variable> variable = Find(variables, {name});
  if (!variable.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int actual, Number(*variable));
  if (actual == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      variable->text(), ": would be ", expected, " for process ", places.rank,
      " if processes were numbered host by host; ", advice));
}

absl::Status CheckSlurmDistribution(const Variables& variables,
                                    const ProcessPlaces& places) {
  constexpr absl::string_view kAdvice = "start them with --distribution=block";
  const Place place = PlaceOf(places.hosts, places.rank);
  RETURN_IF_ERROR(CheckNumberedByHost(variables, "SLURM_NODEID", place.host,
                                      places, kAdvice));
  RETURN_IF_ERROR(CheckNumberedByHost(variables, "SLURM_LOCALID",
                                      place.local_rank, places, kAdvice));
  // Process 0 is at its place in any distribution.
  const std::optional<Variable> distribution =
      Find(variables, {"SLURM_DISTRIBUTION"});
  const bool one_each = std::all_of(places.hosts.begin(), places.hosts.end(),
                                    [](const Host& h) { return h.slots == 1; });
  if (!distribution.has_value() || one_each ||
      absl::StartsWith(distribution->value, "block")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(distribution->text(),
                   ": does not number processes host by host; ", kAdvice));
}

absl::StatusOr<int> Rank(const Variable& variable, int size) {
  ASSIGN_OR_RETURN(const int rank, Number(variable));
  if (rank < size) return rank;
  return absl::InvalidArgumentError(
      absl::StrCat(variable.text(), ": there are ", size,
                   " processes, so the last one is ", size - 1));
}

// The hosts that `size` processes fill, with as many slots as they take.
std::vector<Host> Filled(const std::vector<Host>& hosts, int size) {
  std::vector<Host> filled;
  for (const Host& host : hosts) {
    if (size == 0) break;
    filled.push_back({host.name, std::min(size, host.slots)});
    size -= filled.back().slots;
  }
  return filled;
}

int Slots(const std::vector<Host>& hosts) {
  int slots = 0;
  for (const Host& host : hosts) slots += host.slots;
  return slots;
}

}  // namespace

int ProcessPlaces::size() const { return Slots(hosts); }

absl::StatusOr<ProcessPlaces> PlacesFromSlurm(const Variables& variables) {
  ProcessPlaces places;
  ASSIGN_OR_RETURN(places.hosts, SlurmHosts(variables));
  places.size_source = "SLURM_STEP_TASKS_PER_NODE";
  if (const std::optional<Variable> size =
          Find(variables, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})) {
    ASSIGN_OR_RETURN(const int number, Number(*size));
    if (number != places.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(size->text(), ": the tasks per node are ", places.size(),
                       " in all; set both for the same step"));
    }
    places.size_source = size->name;
  }
  ASSIGN_OR_RETURN(const Variable rank,
                   Require(variables, {"SLURM_PROCID"}, "srun"));
  ASSIGN_OR_RETURN(places.rank, Rank(rank, places.size()));
  RETURN_IF_ERROR(CheckSlurmDistribution(variables, places));
  return places;
}

absl::StatusOr<ProcessPlaces> PlacesFromOpenMpi(const Variables& variables,
                                                std::vector<Host> hosts) {
  constexpr absl::string_view kAdvice =
      "give mpirun's own hosts and slots, and start it with --map-by slot";
  ASSIGN_OR_RETURN(const Variable size_variable,
                   Require(variables, {"OMPI_COMM_WORLD_SIZE"}, "mpirun"));
  ASSIGN_OR_RETURN(const int size, Number(size_variable));
  if (size < 1 || size > Slots(hosts)) {
    return absl::InvalidArgumentError(
        absl::StrCat(size_variable.text(), ": the hosts have slots for ",
                     Slots(hosts), " processes; ", kAdvice));
  }
  ProcessPlaces places = {.hosts = Filled(hosts, size),
                          .size_source = size_variable.name};
  ASSIGN_OR_RETURN(const Variable rank,
                   Require(variables, {"OMPI_COMM_WORLD_RANK"}, "mpirun"));
  ASSIGN_OR_RETURN(places.rank, Rank(rank, size));
  const Place place = PlaceOf(places.hosts, places.rank);
  RETURN_IF_ERROR(CheckNumberedByHost(variables, "OMPI_COMM_WORLD_LOCAL_RANK",
                                      place.local_rank, places, kAdvice));
  RETURN_IF_ERROR(CheckNumberedByHost(variables, "OMPI_COMM_WORLD_LOCAL_SIZE",
                                      places.hosts[place.host].slots, places,
                                      kAdvice));
  return places;
}

}  // namespace parasol

// All-reduces of processes of one machine, beside the floors and, if their
// programs are named (tests/benchmark/collective/peers/build), Gloo and Open
// MPI:
//   bazel run -c opt //tests/benchmark:collectives -- --json=FILE
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "nlohmann/json.hpp"
#include "tests/benchmark/collective/rank_order.h"

ABSL_FLAG(std::string, json, "", "Write the measurements to this file too.");
ABSL_FLAG(std::vector<std::string>, processes,
          std::vector<std::string>({"2", "4"}), "How many processes reduce.");
ABSL_FLAG(std::vector<std::string>, bytes,
          std::vector<std::string>({"4096", "65536", "1048576", "8388608",
                                    "33554432", "67108864"}),
          "Sizes of packs.");
ABSL_FLAG(int, passes, 3,
          "All contenders in turn; the median of the passes counts.");
ABSL_FLAG(std::vector<std::string>, only, {}, "Measure these contenders only.");
ABSL_FLAG(std::string, gloo, "", "The peer program gloo_rank.");
ABSL_FLAG(std::string, mpi, "", "The peer program mpi_rank.");
ABSL_FLAG(std::string, mpirun, "/usr/bin/mpirun", "Starts --mpi.");
ABSL_FLAG(std::string, work, "",
          "Be a rank of this contender (the benchmark starts it itself).");
ABSL_FLAG(int, rank, 0, "With --work.");
ABSL_FLAG(int, ranks, 1, "With --work.");
ABSL_FLAG(std::string, directory, "", "With --work.");
ABSL_FLAG(std::string, host, "127.0.0.1",
          "With --work=sockets: this rank's own address.");

namespace parasol {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(5);

constexpr char kShared[] = "shared memory";
constexpr char kCopied[] = "shared memory, copied";
constexpr char kSockets[] = "sockets";
// With --work alone (two_machines).
constexpr char kSlices[] = "sockets, owner slices";
constexpr char kLanes[] = "piece lanes";
constexpr char kRing[] = "TCP ring";
constexpr char kInPlace[] = "memory floor";
constexpr char kGlooRing[] = "Gloo ring";
constexpr char kGlooHalving[] = "Gloo halving";
constexpr char kMpi[] = "Open MPI";

// Seconds of an all-reduce, by the pack's bytes.
using Times = std::map<size_t, double>;

std::vector<size_t> Sizes() {
  std::vector<size_t> sizes;
  for (const std::string& text : absl::GetFlag(FLAGS_bytes)) {
    size_t bytes = 0;
    CHECK(absl::SimpleAtoi(text, &bytes) && bytes >= 4) << "--bytes=" << text;
    sizes.push_back(bytes / 4 * 4);
  }
  return sizes;
}

// Keeps this rank on a core of its own, as far as there are enough, as mpirun
// does: two that wait for each other on one core measure the scheduler.
void Bind(int rank) {
  cpu_set_t allowed;
  CHECK(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
  int skip = rank % CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    CHECK(sched_setaffinity(0, sizeof(own), &own) == 0);
    return;
  }
}

absl::Status Work(const std::string& contender) {
  const RankOrder order = {.rank = absl::GetFlag(FLAGS_rank),
                           .ranks = absl::GetFlag(FLAGS_ranks),
                           .directory = absl::GetFlag(FLAGS_directory),
                           .bytes = Sizes(),
                           .host = absl::GetFlag(FLAGS_host)};
  // The floor's processes are started by the first.
  if (contender != kInPlace) Bind(order.rank);
  if (contender == kShared) {
    ReduceShared(order, /*in_place=*/true);
  } else if (contender == kCopied) {
    ReduceShared(order, /*in_place=*/false);
  } else if (contender == kSockets) {
    ReduceOverSockets(order, SocketSums::kChosen);
  } else if (contender == kSlices) {
    ReduceOverSockets(order, SocketSums::kOwnerSlices);
  } else if (contender == kLanes) {
    ReduceOverSockets(order, SocketSums::kLanes);
  } else if (contender == kRing) {
    ReduceInRing(order);
  } else if (contender == kInPlace) {
    ReduceInPlace(order);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("no contender \"", contender, "\""));
  }
  return absl::OkStatus();
}

// Returns the command of each process that is to be started.
std::vector<std::vector<std::string>> CommandsOf(const std::string& contender,
                                                 int ranks,
                                                 const std::string& directory) {
  const std::string sizes = absl::StrJoin(Sizes(), ",");
  if (contender == kMpi) {
    return {{absl::GetFlag(FLAGS_mpirun), "--allow-run-as-root",
             "--oversubscribe", "-n", absl::StrCat(ranks),
             absl::GetFlag(FLAGS_mpi), sizes}};
  }
  std::vector<std::vector<std::string>> commands;
  // The floor's processes share what the first has mapped.
  const int started = contender == kInPlace ? 1 : ranks;
  for (int rank = 0; rank < started; ++rank) {
    if (contender == kGlooRing || contender == kGlooHalving) {
      commands.push_back({absl::GetFlag(FLAGS_gloo),
                          contender == kGlooRing ? "ring" : "halving",
                          absl::StrCat(rank), absl::StrCat(ranks), directory,
                          sizes});
      continue;
    }
    commands.push_back({"/proc/self/exe", absl::StrCat("--work=", contender),
                        absl::StrCat("--rank=", rank),
                        absl::StrCat("--ranks=", ranks),
                        absl::StrCat("--directory=", directory),
                        absl::StrCat("--bytes=", sizes)});
  }
  return commands;
}

absl::StatusOr<Times> ParseTimes(const std::string& path) {
  std::ifstream file(path);
  Times times;
  size_t bytes;
  double seconds;
  while (file >> bytes >> seconds) times[bytes] = seconds;
  if (times.empty()) return absl::InternalError("it has printed no times");
  return times;
}

// Runs a contender's processes to their end.
absl::StatusOr<Times> RunOnce(const std::string& contender, int ranks) {
  char directory[] = "/tmp/collectives.XXXXXX";
  CHECK(mkdtemp(directory) != nullptr);
  const std::string printed = absl::StrCat(directory, "/times");
  std::vector<std::unique_ptr<Subprocess>> processes;
  for (const auto& argv : CommandsOf(contender, ranks, directory)) {
    SubprocessOptions options;
    options.argv = argv;
    options.standard_output = OutputTo::File(printed);
    // Open MPI asks for this from those who are root.
    options.environment = {{"OMPI_MCA_btl_base_warn_component_unused", "0"}};
    ASSIGN_OR_RETURN(std::unique_ptr<Subprocess> process,
                     Subprocess::Start(options));
    processes.push_back(std::move(process));
  }
  for (const auto& process : processes) {
    ASSIGN_OR_RETURN(const ProcessEnd end, process->Wait(kLimit));
    if (end.code() == 0) continue;
    return absl::InternalError(absl::StrCat(contender, ": ", Describe(end)));
  }
  const absl::StatusOr<Times> times = ParseTimes(printed);
  CHECK(std::system(absl::StrCat("rm -r ", directory).c_str()) == 0);
  RETURN_IF_ERROR(times.status()) << contender;
  return times;
}

std::vector<std::string> Contenders() {
  std::vector<std::string> all = {kInPlace, kShared, kCopied,
                                  kSockets, kLanes,  kRing};
  if (!absl::GetFlag(FLAGS_gloo).empty()) {
    all.insert(all.end(), {kGlooRing, kGlooHalving});
  }
  if (!absl::GetFlag(FLAGS_mpi).empty()) all.push_back(kMpi);
  const std::vector<std::string> only = absl::GetFlag(FLAGS_only);
  std::erase_if(all, [&](const std::string& contender) {
    return !only.empty() &&
           std::count(only.begin(), only.end(), contender) == 0;
  });
  return all;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The medians of all passes: by contender, by bytes.
using Medians = std::map<std::string, Times>;

absl::StatusOr<Medians> Measure(int ranks) {
  std::map<std::string, std::map<size_t, std::vector<double>>> passes;
  for (int pass = 0; pass < absl::GetFlag(FLAGS_passes); ++pass) {
    for (const std::string& contender : Contenders()) {
      ASSIGN_OR_RETURN(const Times times, RunOnce(contender, ranks));
      for (const auto& [bytes, seconds] : times) {
        passes[contender][bytes].push_back(seconds);
      }
    }
  }
  Medians medians;
  for (const auto& [contender, sizes] : passes) {
    for (const auto& [bytes, seconds] : sizes) {
      medians[contender][bytes] = Median(seconds);
    }
  }
  return medians;
}

// Returns the least time of those contenders that took part, or 0.
double BestOf(const Medians& medians,
              const std::vector<std::string>& contenders, size_t bytes) {
  double best = 0;
  for (const std::string& contender : contenders) {
    const auto it = medians.find(contender);
    if (it == medians.end()) continue;
    const double seconds = it->second.at(bytes);
    best = best == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

// Returns what a contender must be faster than, and by which factor: " 7.3 x
// Gloo (5, met)".
std::string Judge(const Medians& medians, const std::string& contender,
                  size_t bytes) {
  struct FigureTarget {
    std::vector<std::string> of;
    std::string name;
    std::vector<std::string> peers;
    double factor;
    size_t least, most;
  };
  const FigureTarget goals[] = {
      {{kShared, kCopied},
       "Gloo",
       {kGlooRing, kGlooHalving},
       5,
       64 << 10,
       32 << 20},
      {{kShared, kCopied}, "Open MPI", {kMpi}, 1, 0, SIZE_MAX},
      {{kSockets}, "TCP ring", {kRing}, .9, 0, SIZE_MAX}};
  std::string judged;
  for (const FigureTarget& goal : goals) {
    const double peer = BestOf(medians, goal.peers, bytes);
    if (peer == 0 || std::count(goal.of.begin(), goal.of.end(), contender) == 0)
      continue;
    const double ratio = peer / medians.at(contender).at(bytes);
    const bool counts = bytes >= goal.least && bytes <= goal.most;
    absl::StrAppendFormat(&judged, "  %.2f x %s%s", ratio, goal.name,
                          !counts ? ""
                          : ratio >= goal.factor
                              ? absl::StrCat(" (", goal.factor, ", met)")
                              : absl::StrCat(" (", goal.factor, ", NOT MET)"));
  }
  return judged;
}

void Print(int ranks, const Medians& medians) {
  for (const size_t bytes : Sizes()) {
    std::printf("\n%d processes, %zu KiB\n", ranks, bytes >> 10);
    for (const std::string& contender : Contenders()) {
      const double seconds = medians.at(contender).at(bytes);
      std::printf("  %-22s %11.1f us %s\n", contender.c_str(), seconds * 1e6,
                  Judge(medians, contender, bytes).c_str());
    }
  }
  std::fflush(stdout);
}

absl::Status Run() {
  nlohmann::json json = nlohmann::json::array();
  for (const std::string& text : absl::GetFlag(FLAGS_processes)) {
    int ranks = 0;
    if (!absl::SimpleAtoi(text, &ranks) || ranks < 1) {
      return absl::InvalidArgumentError(absl::StrCat("--processes=", text));
    }
    ASSIGN_OR_RETURN(const Medians medians, Measure(ranks));
    Print(ranks, medians);
    for (const auto& [contender, times] : medians) {
      for (const auto& [bytes, seconds] : times) {
        json.push_back({{"processes", ranks},
                        {"contender", contender},
                        {"bytes", bytes},
                        {"seconds", seconds}});
      }
    }
  }
  const std::string path = absl::GetFlag(FLAGS_json);
  if (path.empty()) return absl::OkStatus();
  std::ofstream file(path);
  file << json.dump(1) << "\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("can't write ", path));
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseCommandLine(argc, argv,
                            "Measures all-reduces between processes.");
  const std::string contender = absl::GetFlag(FLAGS_work);
  return parasol::ExitWith(contender.empty() ? parasol::Run()
                                             : parasol::Work(contender));
}

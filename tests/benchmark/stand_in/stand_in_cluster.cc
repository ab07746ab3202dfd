// A real chief with stand-ins for its tasks: what a cluster of a thousand
// workers and a hundred ps costs it, on one machine.
//
//   bazel build //chief //ps //tests/benchmark/stand_in:cluster
//   bazel-bin/tests/benchmark/stand_in/cluster --workers=1000 --ps=100
//
// Prints what the chief's process has at its start and when all tasks are
// there, and its CPU time for a step of all workers and for a claim. `--mode`:
// asynchronous (each goes on by itself), bounded_staleness (with a bound of 0:
// each step waits for the slowest) or synchronous. Then a real ps with a stream
// of each worker.

#include <filesystem>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/resource_limits.h"
#include "cluster/client/chief_client.h"
#include "tests/benchmark/stand_in/chief_process.h"
#include "tests/benchmark/stand_in/stand_in_control.h"
#include "tests/benchmark/stand_in/stand_in_service.h"

ABSL_FLAG(int, workers, 300, "Number of workers.");
ABSL_FLAG(int, ps, 30, "Number of ps.");
ABSL_FLAG(std::string, mode, "bounded_staleness",
          "asynchronous, bounded_staleness or synchronous.");
ABSL_FLAG(std::string, chief, "bazel-bin/chief/chief", "Path of the chief.");
ABSL_FLAG(std::string, ps_binary, "bazel-bin/ps/ps", "Path of the ps.");
ABSL_FLAG(absl::Duration, time, absl::Seconds(10), "Time of the measurement.");

namespace parasol {
namespace {

std::string ParameterServerOf(const std::string& mode, int workers) {
  if (mode == "synchronous") {
    return absl::StrCat("synchronous { total_replicas: ", workers,
                        " replicas_to_aggregate: ", workers, " }");
  }
  return mode == "bounded_staleness" ? "bounded_staleness { bound: 0 }" : "";
}

void Print(const std::string& when, const ProcessUse& use) {
  std::cout << absl::StrFormat(
      "%-22s %4d threads, %5d descriptors, %7.1f MB, %6.2f s of CPU\n", when,
      use.threads, use.descriptors, use.resident_bytes / 1e6,
      absl::ToDoubleSeconds(use.cpu));
}

// Blocks until the condition holds, and returns how long that took.
template <typename Condition>
absl::Duration Await(const std::string& what, const Condition& condition) {
  Clock& clock = Clock::Real();
  const absl::Time start = clock.Now();
  while (!condition()) {
    CHECK(clock.Now() - start < absl::Minutes(3)) << "no " << what;
    clock.Pause(absl::Milliseconds(20));
  }
  return clock.Now() - start;
}

void Run() {
  RaiseDescriptorLimit();
  const int workers = absl::GetFlag(FLAGS_workers);
  const std::string mode = absl::GetFlag(FLAGS_mode);
  const std::string directory =
      std::filesystem::temp_directory_path() / "stand_in_cluster";
  std::filesystem::remove_all(directory);
  const StandInPs ps(absl::GetFlag(FLAGS_ps));
  auto chief = MeasuredChief::Start(
      {.binary = absl::GetFlag(FLAGS_chief),
       .directory = directory,
       .workers = workers,
       .parameter_server = ParameterServerOf(mode, workers)},
      ps);
  CHECK(chief.ok()) << chief.status();
  const auto client =
      ChiefClient::Create((*chief)->address(), absl::Seconds(5));
  Await("chief", [&] { return client->GetStatus().ok(); });
  const ProcessUse alone = (*chief)->use();
  Print("alone", alone);
  StandInTasks tasks({.chief_address = (*chief)->address(),
                      .workers = workers,
                      .ps = &ps,
                      .num_ps = absl::GetFlag(FLAGS_ps),
                      .in_step = mode == "synchronous"});
  const absl::Duration took = Await("steps", [&] {
    return tasks.registered() >= workers + absl::GetFlag(FLAGS_ps) &&
           tasks.steps() >= workers;
  });
  const ProcessUse before = (*chief)->use();
  Print("all there", before);
  const int64_t steps = tasks.steps();
  const int64_t claims = tasks.claims();
  Clock::Real().Pause(absl::GetFlag(FLAGS_time));
  const ProcessUse after = (*chief)->use();
  Print("after the measurement", after);
  const double cpu = absl::ToDoubleSeconds(after.cpu - before.cpu);
  const double each = static_cast<double>(tasks.steps() - steps) / workers;
  std::cout << absl::StrFormat(
      "%s, %d workers, %d ps: all there after %.1f s; %.3f MB a task; %.1f "
      "steps of all workers in %.0f s, %.2f ms of CPU each; %.1f us of CPU a "
      "claim\n",
      mode, workers, absl::GetFlag(FLAGS_ps), absl::ToDoubleSeconds(took),
      (after.resident_bytes - alone.resident_bytes) / 1e6 /
          (workers + absl::GetFlag(FLAGS_ps)),
      each, absl::ToDoubleSeconds(absl::GetFlag(FLAGS_time)), 1e3 * cpu / each,
      1e6 * cpu / static_cast<double>(tasks.claims() - claims));
}

void RunPs() {
  const int workers = absl::GetFlag(FLAGS_workers);
  const std::string directory =
      std::filesystem::temp_directory_path() / "stand_in_cluster";
  const auto ps = MeasuredPs::Start(absl::GetFlag(FLAGS_ps_binary), directory);
  CHECK(ps.ok()) << ps.status();
  {
    const StandInStreams first((*ps)->address(), (*ps)->incarnation(), 1);
    Await("ps", [&] { return first.open() == 1; });
  }
  const ProcessUse alone = (*ps)->use();
  Print("a ps", alone);
  const StandInStreams streams((*ps)->address(), (*ps)->incarnation(), workers);
  const absl::Duration took =
      Await("streams", [&] { return streams.open() == workers; });
  const ProcessUse use = (*ps)->use();
  Print("with all streams", use);
  std::cout << absl::StrFormat(
      "%d streams after %.1f s, %.3f MB each\n", workers,
      absl::ToDoubleSeconds(took),
      (use.resident_bytes - alone.resident_bytes) / 1e6 / workers);
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  parasol::Run();
  parasol::RunPs();
  return 0;
}

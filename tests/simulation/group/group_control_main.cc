// Runs random schedules of groups of workers that have the variables, each
// named by its seed, and prints those that violate an invariant:
//
//   bazel run //tests/simulation/group:group_control -- --schedules=10000
//   bazel run //tests/simulation/group:group_control -- --seed=1234 --trace
//
// With --seed, the schedule is shrunk and printed as a list of its faults.
// The workers' own log goes to stderr with --log.

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "tests/simulation/group/group_control.h"
#include "tests/simulation/group/group_schedule.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/shrink.h"

ABSL_FLAG(uint64_t, schedules, 2000, "Number of schedules.");
ABSL_FLAG(uint64_t, first_seed, 1, "Seed of the first schedule.");
ABSL_FLAG(uint64_t, seed, 0, "Seed of the only schedule, which is printed.");
ABSL_FLAG(bool, trace, false, "Prints every event of --seed's schedule.");
ABSL_FLAG(bool, shrink, true, "Shrinks --seed's schedule.");
ABSL_FLAG(bool, list, false, "Prints a line for each violation.");
ABSL_FLAG(bool, until_found, false, "Stops at the first violation.");
ABSL_FLAG(bool, log, false, "Prints the log of the workers.");

namespace parasol::simulation {
namespace {

int RunOne(uint64_t seed) {
  Schedule schedule = DrawGroupSchedule(seed);
  auto report = GroupControl::Run(schedule);
  std::cout << schedule.ToString();
  if (report.violation && absl::GetFlag(FLAGS_shrink)) {
    const auto run = [](const Schedule& smaller) {
      return GroupControl::Run(smaller).violation;
    };
    schedule = Shrink(schedule, ScheduleRun(run), report.violation->kind);
    std::cout << "shrunk to\n" << schedule.ToString();
  }
  report = GroupControl::Run(schedule, absl::GetFlag(FLAGS_trace));
  for (const std::string& line : report.trace) std::cout << line << "\n";
  if (!report.violation) {
    std::cout << "no violation in " << report.took << ", " << report.events
              << " events, " << report.points << " points\n";
    return 0;
  }
  std::cout << report.violation->kind << ": " << report.violation->what << "\n";
  return 1;
}

int RunMany(uint64_t first, uint64_t count) {
  struct Found {
    uint64_t times = 0;
    uint64_t first_seed = 0;
  };
  std::map<std::string, Found> found;
  int64_t events = 0;
  int64_t points = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const auto report = GroupControl::Run(DrawGroupSchedule(seed));
    events += report.events;
    points += report.points;
    if (!report.violation) continue;
    if (absl::GetFlag(FLAGS_list)) {
      std::cout << seed << " " << report.violation->kind << ": "
                << report.violation->what << std::endl;
    }
    Found& entry = found[report.violation->kind];
    if (entry.times++ == 0) entry.first_seed = seed;
    if (absl::GetFlag(FLAGS_until_found)) {
      count = seed - first + 1;
      break;
    }
  }
  std::cout << count << " schedules, " << events << " events, " << points
            << " messages and operations of groups\n";
  for (const auto& [kind, entry] : found) {
    std::cout << entry.times << " times " << kind << ", first with seed "
              << entry.first_seed << "\n";
  }
  return found.empty() ? 0 : 1;
}

int Main() {
  if (!absl::GetFlag(FLAGS_log) &&
      std::freopen("/dev/null", "w", stderr) == nullptr) {
    return 2;
  }
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  if (seed != 0) return RunOne(seed);
  return RunMany(absl::GetFlag(FLAGS_first_seed),
                 absl::GetFlag(FLAGS_schedules));
}

}  // namespace
}  // namespace parasol::simulation

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return parasol::simulation::Main();
}

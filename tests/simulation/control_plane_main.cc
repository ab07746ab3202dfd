// Runs random schedules of the control plane, each named by its seed, and
// prints those that violate an invariant:
//
//   bazel run //tests/simulation:control_plane -- --schedules=100000
//   bazel run //tests/simulation:control_plane -- --seed=1234 --trace
//
// With --seed, the schedule is shrunk and printed as a list of its faults.
// --off turns rules of the models off: mutants, which have to be found
// (run_mutants). --list_rules prints those that are on.

#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "tests/simulation/control_plane.h"
#include "tests/simulation/rules.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/shrink.h"

ABSL_FLAG(uint64_t, schedules, 10000, "Number of schedules.");
ABSL_FLAG(uint64_t, first_seed, 1, "Seed of the first schedule.");
ABSL_FLAG(uint64_t, seed, 0, "Seed of the only schedule, which is printed.");
ABSL_FLAG(bool, trace, false, "Prints every event of --seed's schedule.");
ABSL_FLAG(bool, shrink, true, "Shrinks --seed's schedule.");
ABSL_FLAG(std::vector<std::string>, off, {}, "Rules that are turned off.");
ABSL_FLAG(bool, list_rules, false, "Prints the rules that are on, and ends.");
ABSL_FLAG(bool, list, false, "Prints a line for each violation.");
ABSL_FLAG(bool, until_found, false, "Stops at the first violation.");
ABSL_FLAG(std::vector<std::string>, on, {}, "Rules that are turned on.");

namespace parasol::simulation {
namespace {

bool SetRules(const std::vector<std::string>& names, bool on, Rules& rules) {
  for (const std::string& name : names) {
    bool* const rule = FindRule(rules, name);
    if (rule == nullptr) {
      std::cerr << "no rule " << name << "\n";
      return false;
    }
    *rule = on;
  }
  return true;
}

int RunOne(uint64_t seed, const Rules& rules) {
  Schedule schedule = DrawSchedule(seed);
  auto report = ControlPlane::Run(schedule, rules);
  std::cout << schedule.ToString();
  if (report.violation && absl::GetFlag(FLAGS_shrink)) {
    schedule = Shrink(schedule, rules, report.violation->kind);
    std::cout << "shrunk to\n" << schedule.ToString();
  }
  report = ControlPlane::Run(schedule, rules, absl::GetFlag(FLAGS_trace));
  for (const std::string& line : report.trace) std::cout << line << "\n";
  if (!report.violation) {
    std::cout << "no violation in " << report.took << ", " << report.events
              << " events\n";
    return 0;
  }
  std::cout << report.violation->kind << ": " << report.violation->what << "\n";
  return 1;
}

int RunMany(uint64_t first, uint64_t count, const Rules& rules) {
  struct Found {
    uint64_t times = 0;
    uint64_t first_seed = 0;
  };
  std::map<std::string, Found> found;
  int64_t events = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Schedule schedule = DrawSchedule(seed);
    const auto report = ControlPlane::Run(schedule, rules);
    events += report.events;
    if (!report.violation) continue;
    if (absl::GetFlag(FLAGS_list)) {
      std::cout << seed << " " << report.violation->kind << ": "
                << report.violation->what << "\n";
    }
    Found& entry = found[report.violation->kind];
    if (entry.times++ == 0) entry.first_seed = seed;
    if (absl::GetFlag(FLAGS_until_found)) {
      count = seed - first + 1;
      break;
    }
  }
  std::cout << count << " schedules, " << events << " events\n";
  for (const auto& [kind, entry] : found) {
    std::cout << entry.times << " times " << kind << ", first with seed "
              << entry.first_seed << "\n";
  }
  return found.empty() ? 0 : 1;
}

int Main() {
  Rules rules;
  if (!SetRules(absl::GetFlag(FLAGS_off), false, rules) ||
      !SetRules(absl::GetFlag(FLAGS_on), true, rules)) {
    return 2;
  }
  if (absl::GetFlag(FLAGS_list_rules)) {
    for (const std::string& name : RuleNames()) {
      if (*FindRule(rules, name)) std::cout << name << "\n";
    }
    return 0;
  }
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  if (seed != 0) return RunOne(seed, rules);
  return RunMany(absl::GetFlag(FLAGS_first_seed),
                 absl::GetFlag(FLAGS_schedules), rules);
}

}  // namespace
}  // namespace parasol::simulation

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return parasol::simulation::Main();
}

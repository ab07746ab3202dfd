#include "tests/benchmark/cpu_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

absl::Duration OfTicks(int64_t ticks) {
  return absl::Seconds(1) * ticks / sysconf(_SC_CLK_TCK);
}

// Reads /proc/<pid>/stat (proc(5)): user and system time are the 14th and 15th
// fields. The second one, a name in parentheses, may have spaces.
absl::Duration OfProcess(pid_t pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  stat.ignore(std::numeric_limits<std::streamsize>::max(), ')');
  std::string skipped;
  for (int field = 3; field < 14; ++field) stat >> skipped;
  int64_t user = 0, system = 0;
  stat >> user >> system;
  return OfTicks(user + system);
}

// Returns the processes that the process's first thread has begun.
std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/task/", pid, "/children"));
  std::vector<pid_t> children;
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

absl::Duration OfThisProcess() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) +
         absl::DurationFromTimeval(usage.ru_stime);
}

// Reads the first line of /proc/stat: "cpu user nice system idle iowait irq
// softirq steal …", in ticks.
absl::Duration OfMachine() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  int64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0,
          softirq = 0, steal = 0;
  stat >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >>
      steal;
  return OfTicks(user + nice + system + steal);
}

}  // namespace

CpuUse CpuUse::Now(const std::vector<pid_t>& others) {
  CpuUse use = {.measured = OfThisProcess(), .machine = OfMachine()};
  for (const pid_t pid : others) {
    use.measured += OfProcess(pid);
    for (const pid_t child : ChildrenOf(pid)) use.measured += OfProcess(child);
  }
  return use;
}

double ForeignShare(const CpuUse& use, absl::Duration time) {
  const absl::Duration cores = time * sysconf(_SC_NPROCESSORS_ONLN);
  if (cores <= absl::ZeroDuration()) return 0;
  return std::max(0., absl::FDivDuration(use.machine - use.measured, cores));
}

}  // namespace parasol

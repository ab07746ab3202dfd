#include "base/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Fields of /proc/self/stat after the command's name, as proc(5) numbers them
// less 3.
constexpr size_t kUserTicks = 14 - 3;
constexpr size_t kSystemTicks = 15 - 3;
constexpr size_t kThreads = 20 - 3;
constexpr size_t kStartTicks = 22 - 3;
constexpr size_t kVirtualBytes = 23 - 3;
constexpr size_t kResidentPages = 24 - 3;

absl::StatusOr<std::string> ReadProcFile(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) {
    return absl::UnavailableError(absl::StrCat(path, ": not readable"));
  }
  return text;
}

int64_t ToInt(absl::string_view text) {
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? value : 0;
}

// Unix time of the machine's start, which start times count from.
int64_t BootTimeSeconds(absl::string_view proc_stat) {
  for (const absl::string_view line : absl::StrSplit(proc_stat, '\n')) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (entry.first == "btime") return ToInt(entry.second);
  }
  return 0;
}

int64_t OpenFds() {
  std::error_code error;
  int64_t count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace

absl::StatusOr<ProcessStats> ReadProcessStats() {
  ASSIGN_OR_RETURN(const std::string stat, ReadProcFile("/proc/self/stat"));
  ASSIGN_OR_RETURN(const std::string machine, ReadProcFile("/proc/stat"));
  // The name may hold blanks and brackets; the last bracket ends it.
  const size_t name_end = stat.rfind(')');
  const std::vector<std::string> fields = absl::StrSplit(
      stat.substr(std::min(name_end + 1, stat.size())), ' ', absl::SkipEmpty());
  if (fields.size() <= kResidentPages) {
    return absl::UnavailableError("/proc/self/stat: too few fields");
  }
  const double ticks_per_second = sysconf(_SC_CLK_TCK);
  ProcessStats stats;
  stats.cpu_seconds =
      (ToInt(fields[kUserTicks]) + ToInt(fields[kSystemTicks])) /
      ticks_per_second;
  stats.start_time_seconds =
      BootTimeSeconds(machine) + ToInt(fields[kStartTicks]) / ticks_per_second;
  stats.resident_bytes = ToInt(fields[kResidentPages]) * sysconf(_SC_PAGESIZE);
  stats.virtual_bytes = ToInt(fields[kVirtualBytes]);
  stats.threads = ToInt(fields[kThreads]);
  stats.open_fds = OpenFds();
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  stats.max_fds = limit.rlim_cur;
  return stats;
}

}  // namespace parasol

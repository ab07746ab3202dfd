#include "ml/input/file/available_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace parasol {
namespace {

constexpr int64_t kKibi = 1024;
// Beyond it, a limit of a control group of the first version is none.
constexpr int64_t kMaxLimit = int64_t{1} << 60;

std::optional<int64_t> IntegerIn(absl::string_view text) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &number) ||
      number < 0) {
    return std::nullopt;
  }
  return number;
}

// Returns the number behind `name` in lines of "name: 12 kB" or "name 12".
std::optional<int64_t> NumberNamed(absl::string_view name,
                                   absl::string_view lines) {
  for (absl::string_view line : absl::StrSplit(lines, '\n')) {
    if (!absl::ConsumePrefix(&line, name)) continue;
    if (!absl::ConsumePrefix(&line, ":") && !absl::StartsWith(line, " ")) {
      continue;
    }
    const bool is_kibi = absl::ConsumeSuffix(&line, " kB");
    const std::optional<int64_t> number = IntegerIn(line);
    if (!number.has_value()) return std::nullopt;
    return is_kibi ? *number * kKibi : *number;
  }
  return std::nullopt;
}

std::optional<int64_t> LeftOf(std::optional<int64_t> limit,
                              std::optional<int64_t> taken) {
  if (!limit.has_value() || *limit > kMaxLimit) return std::nullopt;
  return std::max<int64_t>(0, *limit - taken.value_or(0));
}

// Reads a file of the kernel's; empty if there is none.
std::string SmallFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<int64_t> SoftLimit(int resource) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY ||
      limit.rlim_cur > static_cast<rlim_t>(kMaxLimit)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(limit.rlim_cur);
}

// Files of a control group, which have other names in each version of these.
struct GroupFiles {
  std::string limit;
  std::string current;
  std::string stat;
};

GroupFiles FilesOfThisGroup() {
  const std::string groups = SmallFile("/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    const bool is_second = parts[0] == "0" && parts[1].empty();
    if (!is_second && parts[1] != "memory") continue;
    const std::string root =
        is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    // In a container the group's own files are often at the root.
    for (const std::string& folder : {root + parts[2], root}) {
      GroupFiles files = {
          .limit = SmallFile(
              folder + (is_second ? "/memory.max" : "/memory.limit_in_bytes")),
          .current = SmallFile(folder + (is_second ? "/memory.current"
                                                   : "/memory.usage_in_bytes")),
          .stat = SmallFile(folder + "/memory.stat")};
      if (!files.limit.empty()) return files;
    }
  }
  return {};
}

}  // namespace

std::optional<int64_t> AvailableMemoryOf(const MemoryFacts& facts) {
  std::optional<int64_t> current = IntegerIn(facts.cgroup_current);
  if (current.has_value()) {
    for (const char* cache : {"inactive_file", "active_file"}) {
      *current -= NumberNamed(cache, facts.cgroup_stat).value_or(0);
    }
    *current = std::max<int64_t>(0, *current);
  }
  std::optional<int64_t> least;
  for (const std::optional<int64_t>& left :
       {NumberNamed("MemAvailable", facts.meminfo),
        LeftOf(IntegerIn(facts.cgroup_limit), current),
        LeftOf(facts.address_space_limit, NumberNamed("VmSize", facts.status)),
        LeftOf(facts.data_limit, NumberNamed("VmData", facts.status))}) {
    if (left.has_value()) least = std::min(least.value_or(*left), *left);
  }
  return least;
}

std::optional<int64_t> AvailableMemory() {
  const std::string meminfo = SmallFile("/proc/meminfo");
  const std::string status = SmallFile("/proc/self/status");
  const GroupFiles group = FilesOfThisGroup();
  return AvailableMemoryOf({.meminfo = meminfo,
                            .status = status,
                            .cgroup_limit = group.limit,
                            .cgroup_current = group.current,
                            .cgroup_stat = group.stat,
                            .address_space_limit = SoftLimit(RLIMIT_AS),
                            .data_limit = SoftLimit(RLIMIT_DATA)});
}

}  // namespace parasol

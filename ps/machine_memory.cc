#include "ps/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace parasol {
namespace {

constexpr absl::string_view kUnified = "/sys/fs/cgroup";
constexpr absl::string_view kMemoryAlone = "/sys/fs/cgroup/memory";

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Adds the file `name` in the group `group` under `root`, and those above.
void AddFiles(absl::string_view root, absl::string_view group,
              absl::string_view name, std::vector<std::string>& files) {
  while (true) {
    group = absl::StripSuffix(group, "/");
    files.push_back(absl::StrCat(root, group, "/", name));
    if (group.empty()) return;
    group = group.substr(0, group.rfind('/'));
  }
}

}  // namespace

uint64_t MachineMemoryBytes() {
  std::vector<std::string> limits;
  for (const std::string& file :
       MemoryLimitFiles(TextOf("/proc/self/cgroup"))) {
    limits.push_back(TextOf(file));
  }
  return SmallestMemory(TextOf("/proc/meminfo"), limits);
}

uint64_t SmallestMemory(absl::string_view meminfo,
                        const std::vector<std::string>& limits) {
  uint64_t smallest = UINT64_MAX;
  for (absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    uint64_t kib = 0;
    if (!absl::ConsumePrefix(&line, "MemTotal:") ||
        !absl::ConsumeSuffix(&line, "kB") ||
        !absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &kib)) {
      continue;
    }
    smallest = std::min(smallest, std::min(kib, UINT64_MAX >> 10) << 10);
  }
  for (const std::string& limit : limits) {
    uint64_t bytes = 0;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(limit), &bytes)) continue;
    if (bytes > 0) smallest = std::min(smallest, bytes);
  }
  return smallest;
}

// A line is "0::/group" with one hierarchy for all, or "4:memory:/group".
std::vector<std::string> MemoryLimitFiles(absl::string_view groups) {
  std::vector<std::string> files;
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || !absl::StartsWith(fields[2], "/")) continue;
    if (fields[1].empty()) {
      AddFiles(kUnified, fields[2], "memory.max", files);
    } else if (fields[1] == "memory") {
      AddFiles(kMemoryAlone, fields[2], "memory.limit_in_bytes", files);
    }
  }
  return files;
}

}  // namespace parasol

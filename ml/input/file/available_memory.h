#ifndef PARASOL_ML_INPUT_FILE_AVAILABLE_MEMORY_H_
#define PARASOL_ML_INPUT_FILE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace parasol {

// The texts and limits that say how much memory a process may still take; empty
// or nullopt where the system does not say.
struct MemoryFacts {
  absl::string_view meminfo = {};                   // /proc/meminfo
  absl::string_view status = {};                    // /proc/self/status
  absl::string_view cgroup_limit = {};              // memory.max, or "max"
  absl::string_view cgroup_current = {};            // memory.current
  absl::string_view cgroup_stat = {};               // memory.stat
  std::optional<int64_t> address_space_limit = {};  // RLIMIT_AS
  std::optional<int64_t> data_limit = {};           // RLIMIT_DATA
};

// Returns the bytes that a process can still take: the least that the machine,
// its control group (whose page cache counts as free) and its own limits leave;
// nullopt if none of them is known. Pure.
std::optional<int64_t> AvailableMemoryOf(const MemoryFacts& facts);

// Returns the same of this process, now.
std::optional<int64_t> AvailableMemory();

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_AVAILABLE_MEMORY_H_

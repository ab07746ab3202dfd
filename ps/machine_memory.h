#ifndef PARASOL_PS_MACHINE_MEMORY_H_
#define PARASOL_PS_MACHINE_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace parasol {

// Returns the bytes of memory that this process can have: the machine's, or
// fewer if its control group, as a container's, has a limit. UINT64_MAX if
// /proc says nothing.
uint64_t MachineMemoryBytes();

// Returns the smallest number of bytes in the texts: `meminfo` is the text of
// /proc/meminfo, each of `limits` a control group's, a number of bytes or
// "max". A text that can't be read sets no limit.
uint64_t SmallestMemory(absl::string_view meminfo,
                        const std::vector<std::string>& limits);

// Returns the paths of the files with the memory limits of a process whose
// /proc/self/cgroup is `groups`: of its groups and all above.
std::vector<std::string> MemoryLimitFiles(absl::string_view groups);

}  // namespace parasol

#endif  // PARASOL_PS_MACHINE_MEMORY_H_

#ifndef PARASOL_BASE_PROCESS_STATS_H_
#define PARASOL_BASE_PROCESS_STATS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace parasol {

// The kernel's figures about this process.
struct ProcessStats {
  double cpu_seconds = 0;
  double start_time_seconds = 0;  // Unix time
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t threads = 0;
  int64_t open_fds = 0;
  int64_t max_fds = 0;
};

// Reads the figures from /proc.
//   Unavailable  /proc is not mounted or not readable.
absl::StatusOr<ProcessStats> ReadProcessStats();

}  // namespace parasol

#endif  // PARASOL_BASE_PROCESS_STATS_H_

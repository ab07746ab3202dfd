#ifndef PARASOL_TESTS_BENCHMARK_CPU_USE_H_
#define PARASOL_TESTS_BENCHMARK_CPU_USE_H_

#include <sys/types.h>

#include <vector>

#include "absl/time/time.h"

namespace parasol {

// CPU time that the measured processes, and the whole machine, have used up to
// now. Interrupts belong to nobody and are not counted.
struct CpuUse {
  absl::Duration measured = absl::ZeroDuration();
  absl::Duration machine = absl::ZeroDuration();

  // Reads the times of this process, of `others` and of the processes that
  // these have begun; a process that is gone counts nothing.
  static CpuUse Now(const std::vector<pid_t>& others);

  friend CpuUse operator-(const CpuUse& a, const CpuUse& b) {
    return {a.measured - b.measured, a.machine - b.machine};
  }
};

// Returns the share of all cores that other programs, and other virtual
// machines of the host, have taken during `time`.
double ForeignShare(const CpuUse& use, absl::Duration time);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_CPU_USE_H_

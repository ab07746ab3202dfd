#ifndef PARASOL_TESTS_BENCHMARK_MACHINE_H_
#define PARASOL_TESTS_BENCHMARK_MACHINE_H_

#include <string>

namespace parasol {

// The parts of a machine that figures depend on. "unknown" where the system
// does not tell.
struct Machine {
  std::string processor = "unknown";  // "Intel(R) Xeon(R) …"
  int cores = 0;                      // cores that this process may use
  // The algorithm that new TCP connections use: "cubic", "bbr", …. One that
  // paces its packets moves half as much within a machine.
  std::string congestion_control = "unknown";

  static Machine This();
};

// Returns a line for people, without an end of line.
std::string ToLine(const Machine& machine);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_MACHINE_H_

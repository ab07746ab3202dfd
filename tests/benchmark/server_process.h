#ifndef PARASOL_TESTS_BENCHMARK_SERVER_PROCESS_H_
#define PARASOL_TESTS_BENCHMARK_SERVER_PROCESS_H_

#include <cstddef>
#include <memory>
#include <string>

#include "base/subprocess.h"
#include "tests/benchmark/contents.h"

namespace parasol {

// Resident bytes of a process: now, and the most so far.
struct MemoryUse {
  size_t resident = 0;
  size_t peak = 0;
};

// A process of this binary that runs as a contender's server (--serve=<kind>).
// Ends with this object.
class ServerProcess {
 public:
  ServerProcess(const std::string& kind, const Contents& contents);

  int port() const { return port_; }
  MemoryUse memory() const;

 private:
  std::unique_ptr<Subprocess> process_;
  int port_ = 0;
};

// Returns the first line that a child prints; CHECKs that there is one.
std::string ReadLine(const Subprocess& process);

// Server side: reports the port to the parent, then blocks until the process is
// killed.
[[noreturn]] void ServeUntilKilled(int port);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_SERVER_PROCESS_H_

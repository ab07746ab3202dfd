#ifndef PARASOL_TESTS_BENCHMARK_SERVER_PROCESS_H_
#define PARASOL_TESTS_BENCHMARK_SERVER_PROCESS_H_

#include <sys/types.h>

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
  pid_t pid() const { return process_->pid(); }
  MemoryUse memory() const;

 private:
  std::unique_ptr<Subprocess> process_;
  int port_ = 0;
};

// Returns the IPv4 address at which servers listen (--host).
std::string ServerHost();

// Returns a path of this binary that leads other processes to it, too, as long
// as this process runs.
std::string OwnBinary();

// Returns the first line that a child prints; CHECKs that there is one.
std::string ReadLine(const Subprocess& process);

// Server side: reports the port to the parent, then blocks until the process is
// killed.
[[noreturn]] void ServeUntilKilled(int port);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_SERVER_PROCESS_H_

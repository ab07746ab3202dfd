#ifndef PARASOL_TESTS_BENCHMARK_SERVER_PROCESS_H_
#define PARASOL_TESTS_BENCHMARK_SERVER_PROCESS_H_

#include <cstddef>
#include <memory>
#include <string>

#include "base/subprocess.h"

namespace parasol {

// This binary once more, as the server of a contender (--serve=<contender>).
// Ends with this object.
class ServerProcess {
 public:
  explicit ServerProcess(const std::string& contender);

  std::string address() const;
  int port() const { return port_; }
  size_t rss_bytes() const;

 private:
  std::unique_ptr<Subprocess> process_;
  int port_ = 0;
};

// The server's side: tells the port, then blocks until the process is killed.
[[noreturn]] void ServeUntilKilled(int port);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_SERVER_PROCESS_H_

#include "tests/benchmark/server_process.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {

ServerProcess::ServerProcess(const std::string& contender) {
  auto process = Subprocess::Start(
      {.argv = {"/proc/self/exe", absl::StrCat("--serve=", contender)},
       .standard_output = OutputTo::Pipe()});
  CHECK(process.ok()) << process.status();
  process_ = *std::move(process);
  std::string line;
  char c;
  while (read(process_->output_pipe(), &c, 1) == 1 && c != '\n') line += c;
  CHECK(absl::SimpleAtoi(line, &port_))
      << "the server of " << contender << " did not start";
}

std::string ServerProcess::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

size_t ServerProcess::rss_bytes() const {
  std::ifstream statm(absl::StrCat("/proc/", process_->pid(), "/statm"));
  size_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void ServeUntilKilled(int port) {
  std::printf("%d\n", port);
  std::fflush(stdout);
  while (true) pause();
}

}  // namespace parasol

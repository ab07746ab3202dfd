#include "tests/benchmark/server_process.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"

ABSL_FLAG(std::string, host, "127.0.0.1",
          "IPv4 address at which servers listen.");
ABSL_FLAG(std::string, server_namespace, "",
          "Network namespace (ip netns) that servers run in, which has --host; "
          "empty: this process's.");

namespace parasol {

std::string ServerHost() { return absl::GetFlag(FLAGS_host); }

std::string OwnBinary() { return absl::StrCat("/proc/", getpid(), "/exe"); }

ServerProcess::ServerProcess(const std::string& kind,
                             const Contents& contents) {
  SubprocessOptions options = {
      .argv = {OwnBinary(), absl::StrCat("--serve=", kind),
               absl::StrCat("--host=", ServerHost())},
      .standard_output = OutputTo::Pipe()};
  const std::string network = absl::GetFlag(FLAGS_server_namespace);
  if (!network.empty()) {
    options.argv.insert(options.argv.begin(),
                        {"/usr/sbin/ip", "netns", "exec", network});
  }
  for (std::string& flag : ToFlags(contents)) {
    options.argv.push_back(std::move(flag));
  }
  auto process = Subprocess::Start(options);
  CHECK(process.ok()) << process.status();
  process_ = *std::move(process);
  CHECK(absl::SimpleAtoi(ReadLine(*process_), &port_));
}

MemoryUse ServerProcess::memory() const {
  std::ifstream status(absl::StrCat("/proc/", process_->pid(), "/status"));
  MemoryUse use;
  std::string word;
  while (status >> word) {
    if (word == "VmRSS:") status >> use.resident;
    if (word == "VmHWM:") status >> use.peak;
  }
  return {.resident = use.resident << 10, .peak = use.peak << 10};
}

std::string ReadLine(const Subprocess& process) {
  std::string line;
  char c;
  while (read(process.output_pipe(), &c, 1) == 1) {
    if (c == '\n') return line;
    line += c;
  }
  LOG(FATAL) << "a child of the benchmark ended after \"" << line << '"';
  return line;
}

void ServeUntilKilled(int port) {
  std::printf("%d\n", port);
  std::fflush(stdout);
  while (true) pause();
}

}  // namespace parasol

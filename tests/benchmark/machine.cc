#include "tests/benchmark/machine.h"

#include <fstream>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace parasol {

Machine Machine::This() {
  Machine machine;
  machine.cores = std::thread::hardware_concurrency();
  std::ifstream processors("/proc/cpuinfo");
  for (std::string line; std::getline(processors, line);) {
    const size_t colon = line.find(':');
    if (!absl::StartsWith(line, "model name") || colon == line.npos) continue;
    machine.processor = line.substr(colon + 1);
    absl::StripAsciiWhitespace(&machine.processor);
    break;
  }
  std::ifstream algorithm("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string name;
  if (algorithm >> name) machine.congestion_control = name;
  return machine;
}

std::string ToLine(const Machine& machine) {
  return absl::StrFormat("%d cores of %s, TCP with %s", machine.cores,
                         machine.processor, machine.congestion_control);
}

}  // namespace parasol

#include "third_party/cuda_on_host/settings.h"

#include <signal.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

namespace cuda_on_host {
namespace {

struct Fault {
  std::string name;
  int status = 0;
  int call = 0;  // 0: every call
};

struct Faults {
  std::vector<Fault> faults;
  std::map<std::string, int> calls;
};

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Takes what stands before `separator`, or all, off the front of `text`.
std::string_view TakeUntil(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? "" : text.substr(end + 1);
  return part;
}

template <typename T>
T ParseNumber(std::string_view text, const char* what) {
  T value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    Die(std::string(what) + ": no number: \"" + std::string(text) + "\"");
  }
  return value;
}

Faults ParseFaults(std::string_view text) {
  constexpr char kName[] = "PARASOL_CUDA_ON_HOST_FAULT";
  Faults result;
  while (!text.empty()) {
    std::string_view one = TakeUntil(text, ',');
    Fault fault;
    fault.name = TakeUntil(one, '=');
    fault.status = ParseNumber<int>(TakeUntil(one, '@'), kName);
    if (!one.empty()) fault.call = ParseNumber<int>(one, kName);
    result.faults.push_back(fault);
  }
  return result;
}

std::mutex faults_mutex;
int lost_status = 0;

Faults& TheFaults() {
  static auto* const faults =
      new Faults(ParseFaults(Environment("PARASOL_CUDA_ON_HOST_FAULT")));
  return *faults;
}

Schedule& MutableSchedule() {
  static auto* const schedule =
      new Schedule(ParseSchedule(Environment("PARASOL_CUDA_ON_HOST_SCHEDULE")));
  return *schedule;
}

Mark ParseMark(const std::string& text) {
  if (text.empty() || text == "launch") return Mark::kAtLaunch;
  if (text == "run") return Mark::kWhenRun;
  Die("PARASOL_CUDA_ON_HOST_EXTERNAL_EVENTS: neither launch nor run: \"" +
      text + "\"");
}

Mark& MutableMark() {
  static Mark mark =
      ParseMark(Environment("PARASOL_CUDA_ON_HOST_EXTERNAL_EVENTS"));
  return mark;
}

}  // namespace

Schedule ParseSchedule(std::string_view text) {
  Schedule schedule;
  if (text.empty()) return schedule;
  schedule.seed = ParseNumber<uint64_t>(TakeUntil(text, ','),
                                        "PARASOL_CUDA_ON_HOST_SCHEDULE");
  static const std::map<std::string_view, Late> names = {
      {"", Late::kNothing},         {"none", Late::kNothing},
      {"compute", Late::kCompute},  {"copy-in", Late::kCopyIn},
      {"copy-out", Late::kCopyOut}, {"random", Late::kRandom}};
  const auto found = names.find(text);
  if (found == names.end()) {
    Die("PARASOL_CUDA_ON_HOST_SCHEDULE: nothing is called \"" +
        std::string(text) + "\"");
  }
  schedule.late = found->second;
  return schedule;
}

const Schedule& TheSchedule() { return MutableSchedule(); }

void SetSchedule(const Schedule& schedule) {
  MutableSchedule() = schedule;
  TheRandom() = Random(schedule.seed);
}

Mark ExternalEvents() { return MutableMark(); }

void SetExternalEvents(Mark mark) { MutableMark() = mark; }

bool ChecksAccesses() {
  static const bool checks = [] {
    const std::string text = Environment("PARASOL_CUDA_ON_HOST_ACCESSES");
    if (!text.empty() && text != "checked" && text != "unchecked") {
      Die("PARASOL_CUDA_ON_HOST_ACCESSES: neither checked nor unchecked: \"" +
          text + "\"");
    }
    return text != "unchecked";
  }();
  return checks;
}

int DeviceCount() {
  static const int count = [] {
    const std::string text = Environment("PARASOL_CUDA_ON_HOST_DEVICES");
    return text.empty()
               ? 1
               : ParseNumber<int>(text, "PARASOL_CUDA_ON_HOST_DEVICES");
  }();
  return count;
}

int FaultOf(const char* name) {
  const std::lock_guard<std::mutex> lock(faults_mutex);
  Faults& faults = TheFaults();
  if (faults.faults.empty()) return 0;
  const int call = ++faults.calls[name];
  for (const Fault& fault : faults.faults) {
    if (fault.name == name && (fault.call == 0 || fault.call == call)) {
      if (fault.status < 0) {
        raise(-fault.status);
        return 0;
      }
      return fault.status;
    }
  }
  return 0;
}

void SetFaults(const std::string& faults) {
  const std::lock_guard<std::mutex> lock(faults_mutex);
  TheFaults() = ParseFaults(faults);
  lost_status = 0;
}

void LoseDevicesIfFatal(int status) {
  constexpr int kIllegalAddress = 700, kLaunchFailure = 719;
  if (status < kIllegalAddress || status > kLaunchFailure) return;
  // Peer access that is enabled, that is not, and to too many devices.
  if (status == 704 || status == 705 || status == 711) return;
  const std::lock_guard<std::mutex> lock(faults_mutex);
  if (lost_status == 0) lost_status = status;
}

int LostStatus() {
  const std::lock_guard<std::mutex> lock(faults_mutex);
  return lost_status;
}

bool IsLostFor(std::string_view function) {
  return LostStatus() != 0 &&
         function.find("Destroy") == std::string_view::npos;
}

void Die(const std::string& message) {
  std::fprintf(stderr, "CUDA on the host: %s\n", message.c_str());
  std::fflush(stderr);
  std::abort();
}

uint64_t Random::Next() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

Random& TheRandom() {
  static auto* const random = new Random(TheSchedule().seed);
  return *random;
}

}  // namespace cuda_on_host

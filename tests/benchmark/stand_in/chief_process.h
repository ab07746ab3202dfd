#ifndef PARASOL_TESTS_BENCHMARK_STAND_IN_CHIEF_PROCESS_H_
#define PARASOL_TESTS_BENCHMARK_STAND_IN_CHIEF_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/subprocess.h"
#include "tests/benchmark/stand_in/stand_in_service.h"

namespace parasol {

// Resources that a process takes of its machine.
struct ProcessUse {
  int64_t threads = 0;
  int64_t descriptors = 0;
  int64_t resident_bytes = 0;
  absl::Duration cpu;

  // Reads the numbers of a process; all 0 if it is gone.
  static ProcessUse Of(pid_t pid);
};

// A real ps whose chief never comes.
class MeasuredPs {
 public:
  // Starts `ps` with a stand-in for its chief and waits until it has registered
  // there. `directory` is made.
  static absl::StatusOr<std::unique_ptr<MeasuredPs>> Start(
      const std::string& binary, const std::string& directory);

  std::string address() const { return address_; }
  uint64_t incarnation() const { return incarnation_; }
  ProcessUse use() const { return ProcessUse::Of(process_->pid()); }

 private:
  MeasuredPs() = default;

  StandInChief chief_;
  std::string address_;
  std::unique_ptr<Subprocess> process_;
  uint64_t incarnation_ = 0;
};

// The real chief of a cluster whose tasks are stand-ins.
class MeasuredChief {
 public:
  struct Options {
    std::string binary;     // path of `chief`
    std::string directory;  // has job and checkpoints; is made
    int workers = 0;
    // Text of the job's parameter_server block.
    std::string parameter_server;
    // Soft limit of open descriptors with which it starts; 0: this process's.
    int64_t soft_descriptors = 0;
  };
  static absl::StatusOr<std::unique_ptr<MeasuredChief>> Start(
      const Options& options, const StandInPs& ps);

  std::string address() const { return address_; }
  ProcessUse use() const { return ProcessUse::Of(process_->pid()); }
  Subprocess& process() { return *process_; }

 private:
  MeasuredChief(std::string address, std::unique_ptr<Subprocess> process)
      : address_(std::move(address)), process_(std::move(process)) {}

  const std::string address_;
  const std::unique_ptr<Subprocess> process_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_STAND_IN_CHIEF_PROCESS_H_

#ifndef PARASOL_BASE_SUBPROCESS_H_
#define PARASOL_BASE_SUBPROCESS_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

// Child processes, for the local launcher and for tests of whole binaries.
namespace parasol {

// How a child ended: by exit(code), or by a signal.
struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;

  // As a shell tells it: the exit code, or 128 plus the signal.
  int code() const { return signal == 0 ? exit_code : 128 + signal; }
  bool operator==(const ProcessEnd&) const = default;
};

// "exit code 2", "signal 9 (Killed)".
std::string Describe(const ProcessEnd& end);

// Where a child's stdout or stderr goes.
struct OutputTo {
  enum class Kind { kInherit, kFile, kPipe };
  Kind kind = Kind::kInherit;
  std::string path = {};

  static OutputTo Inherit() { return {}; }
  // Appended to; created when it is not there.
  static OutputTo File(std::string path) {
    return {Kind::kFile, std::move(path)};
  }
  static OutputTo Pipe() { return {Kind::kPipe, {}}; }
};

struct SubprocessOptions {
  // argv[0] is the binary's path; PATH is not searched.
  std::vector<std::string> argv = {};
  // Added to this process's environment.
  std::map<std::string, std::string> environment = {};
  OutputTo standard_output = {};
  OutputTo standard_error = {};
  // Ctrl-C in a terminal then reaches this process only, not the child.
  bool own_process_group = false;
};

// One child. It never outlives the *thread* that started it (PDEATHSIG), nor
// this object: the destructor kills it and reaps it. It inherits no other
// file descriptor and no blocked signal. stdin is /dev/null.
// Not thread-safe.
class Subprocess {
 public:
  //   NotFound, PermissionDenied  the binary or an output file: named.
  //   ResourceExhausted           no process or file descriptor is left.
  static absl::StatusOr<std::unique_ptr<Subprocess>> Start(
      const SubprocessOptions& options);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }

  // Does nothing once the child has ended.
  void Signal(int signal);
  void Terminate();  // SIGTERM
  void Kill();       // SIGKILL

  // How it ended; nothing while it runs. Does not block.
  std::optional<ProcessEnd> Poll();

  //   DeadlineExceeded  it still runs after `limit`.
  absl::StatusOr<ProcessEnd> Wait(absl::Duration limit);

  // The reading ends of its pipes, -1 where there is none; owned by this.
  int output_pipe() const { return output_pipe_; }
  int error_pipe() const { return error_pipe_; }

 private:
  explicit Subprocess(pid_t pid) : pid_(pid) {}

  const pid_t pid_;
  int pid_fd_ = -1;  // readable once the child has ended
  int output_pipe_ = -1;
  int error_pipe_ = -1;
  std::optional<ProcessEnd> end_;
};

struct CompletedProcess {
  ProcessEnd end;
  std::string standard_output;
  std::string standard_error;
};

// Runs a command to its end and returns what it wrote (its outputs are pipes
// whatever `options` say).
//   DeadlineExceeded  it was still running after `limit`, and was killed.
//   and the codes of Subprocess::Start.
absl::StatusOr<CompletedProcess> RunSubprocess(SubprocessOptions options,
                                               absl::Duration limit);

}  // namespace parasol

#endif  // PARASOL_BASE_SUBPROCESS_H_

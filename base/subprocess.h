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
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// Child processes, for the local launcher and for tests of whole binaries.
namespace parasol {

// The end of a child: by exit(code), or by a signal.
struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;

  // Returns the code as a shell reports it: the exit code, or 128 plus the
  // signal.
  int code() const { return signal == 0 ? exit_code : 128 + signal; }
  bool operator==(const ProcessEnd&) const = default;
};

// Returns a text like "exit code 2" or "signal 9 (Killed)".
std::string Describe(const ProcessEnd& end);

// Destination of a child's stdout or stderr.
struct OutputTo {
  enum class Kind { kInherit, kFile, kPipe };
  Kind kind = Kind::kInherit;
  std::string path = {};

  static OutputTo Inherit() { return {}; }
  // Appends to the file; creates it if it does not exist.
  static OutputTo File(std::string path) {
    return {Kind::kFile, std::move(path)};
  }
  static OutputTo Pipe() { return {Kind::kPipe, {}}; }
};

struct SubprocessOptions {
  // Arguments; argv[0] is the path of the binary, which is not searched in
  // PATH.
  std::vector<std::string> argv = {};
  // Variables that are added to this process's environment.
  std::map<std::string, std::string> environment = {};
  OutputTo standard_output = {};
  OutputTo standard_error = {};
  // True to give the child a socket as its stdin, for WriteInput(). The child
  // reads an end of file as soon as this process or the Subprocess ends,
  // however it does. False: stdin is /dev/null.
  bool input_socket = false;
  // True to run the child in a process group of its own: Ctrl-C in a terminal
  // then reaches this process only, not the child.
  bool own_process_group = false;
};

// One child process. It never outlives the *thread* that started it
// (PDEATHSIG), nor this object: the destructor kills and reaps it. It inherits
// no other file descriptor and no blocked signal. Not thread-safe.
class Subprocess {
 public:
  // Starts the child.
  //   NotFound, PermissionDenied  the binary or an output file can't be used;
  //                               the message names it.
  //   ResourceExhausted           no process or file descriptor is left.
  static absl::StatusOr<std::unique_ptr<Subprocess>> Start(
      const SubprocessOptions& options);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }

  // Sends a signal. Does nothing once the child has ended.
  void Signal(int signal);
  void Terminate();  // SIGTERM
  void Kill();       // SIGKILL

  // Returns how the child ended; nullopt while it runs. Does not block.
  std::optional<ProcessEnd> Poll();

  // Blocks until the child has ended.
  //   DeadlineExceeded  it still runs after `limit`.
  absl::StatusOr<ProcessEnd> Wait(absl::Duration limit);

  // Writes to the child's input socket and returns true; false if not all of
  // `bytes` could be written: the child has ended, or reads nothing. Does not
  // block.
  bool WriteInput(absl::string_view bytes);

  // Return the reading ends of the child's pipes, owned by this object; -1 if
  // there is none.
  int output_pipe() const { return output_pipe_; }
  int error_pipe() const { return error_pipe_; }

 private:
  explicit Subprocess(pid_t pid) : pid_(pid) {}

  const pid_t pid_;
  int pid_fd_ = -1;  // readable once the child has ended
  int input_socket_ = -1;
  int output_pipe_ = -1;
  int error_pipe_ = -1;
  std::optional<ProcessEnd> end_;
};

struct CompletedProcess {
  ProcessEnd end;
  std::string standard_output;
  std::string standard_error;
};

// Runs a command to its end and returns its outputs, which are pipes whatever
// `options` says.
//   DeadlineExceeded  it was still running after `limit`, and was killed.
//   any other         as for Subprocess::Start().
absl::StatusOr<CompletedProcess> RunSubprocess(SubprocessOptions options,
                                               absl::Duration limit);

}  // namespace parasol

#endif  // PARASOL_BASE_SUBPROCESS_H_

#ifndef PARASOL_BASE_PROCESS_H_
#define PARASOL_BASE_PROCESS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// What the main() of every binary does the same way: flags, --help, --version,
// logging, signals and exit codes.
namespace parasol {

// The exit codes of docs/operations.md: 128 and above mean "start me again".
enum class ExitCode : int {
  kDone = 0,
  kPermanentFailure = 1,
  kBadConfiguration = 2,
  kRetryable = 138,
  kTerminated = 143,
};

// InvalidArgument, NotFound (a file that a flag or the job names),
// PermissionDenied: kBadConfiguration. Unavailable, DeadlineExceeded:
// kRetryable. Cancelled: kTerminated. Every other error: kPermanentFailure.
ExitCode ExitCodeFor(const absl::Status& status);

// Prints "<binary>: <message>" on stderr as one line, unless OK, and returns
// the exit code. The last thing that main() does.
int ExitWith(const absl::Status& status);

// Parses the command line (base/command_line.h has the syntax and a flag that
// may be repeated). Answers --help (the `usage` text, then this
// project's flags with their defaults) and --version and exits 0; an unknown
// flag or a bad value is one line on stderr, exit 2. Returns the arguments
// that are no flags. Applies --log_format=text|json. From now on a write beyond
// the limit of a file's size (RLIMIT_FSIZE) fails instead of ending the
// process.
std::vector<std::string> ParseCommandLine(int argc, char** argv,
                                          absl::string_view usage);

// "parasol 0.1.0 (commit 0123456789ab)"; the commit is known to binaries that
// depend on //base:version_stamp.
std::string VersionString();

// Names this process ("worker/1") in every line logged from now on, in the
// format that --log_format chose.
void NameTaskInLog(absl::string_view task);

// SIGTERM and SIGINT end a process in good order: construct one before any
// thread starts (it blocks the signals for all of them). The first signal is
// noted; the second one ends the process at once with 143.
// One per process. Thread-safe. Its destructor disarms it and unblocks the
// signals in its thread.
class TerminationSignal {
 public:
  TerminationSignal();
  ~TerminationSignal();
  TerminationSignal(const TerminationSignal&) = delete;
  TerminationSignal& operator=(const TerminationSignal&) = delete;

  // Runs `callback` on another thread at the first signal (at once if it has
  // come already). Callbacks run in the order in which they were added.
  void OnSignal(std::function<void()> callback);

  // Waits for a callback that runs and drops the others, for good: before what
  // they refer to is destroyed. A second signal still ends the process. May be
  // called twice, from one thread, which is not a callback's.
  void Disarm();

  // SIGTERM or SIGINT, whichever came first; 0 as long as none has.
  int signal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace parasol

#endif  // PARASOL_BASE_PROCESS_H_

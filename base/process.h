#ifndef PARASOL_BASE_PROCESS_H_
#define PARASOL_BASE_PROCESS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/command_line.h"

// Functions that the main() of every binary calls: flags, --help, --version,
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

// Returns the exit code for `status`. kBadConfiguration: InvalidArgument,
// NotFound (a file that a flag or the job names), PermissionDenied. kRetryable:
// Unavailable, DeadlineExceeded. kTerminated: Cancelled. kPermanentFailure:
// every other error.
ExitCode ExitCodeFor(const absl::Status& status);

// Prints "<binary>: <message>" on stderr as one line, unless `status` is OK,
// and returns the exit code. main() calls it last. With --log_format=json the
// line is the log's, with the fields "binary" and "exit_code".
int ExitWith(const absl::Status& status);

// Parses the command line, whose flags are `flags`; base/command_line.h has the
// syntax and a flag that may be repeated. Returns the arguments that are not
// flags. Answers --help (the `usage` text, then this project's flags with their
// defaults) and
// --version, and exits with 0. Reports an unknown flag or a bad value as one
// line on stderr, and exits with 2. Applies --log_format=text|json. From now on
// a write beyond the limit of a file's size (RLIMIT_FSIZE) fails instead of
// ending the process.
std::vector<std::string> ParseCommandLine(int argc, char** argv,
                                          absl::string_view usage,
                                          FlagNames flags = {});

// Does it for a program that takes no other arguments: one is an error, too.
void ParseFlagsAlone(int argc, char** argv, absl::string_view usage);

// Returns "parasol 0.1.0 (commit 0123456789ab)"; only binaries that depend on
// //base:version_stamp know the commit.
std::string VersionString();

// Names this process ("worker/1") in every line logged from now on, in the
// format that --log_format chose.
void NameTaskInLog(absl::string_view task);

// Ends a process in good order on SIGTERM and SIGINT. Must be constructed
// before any thread starts, because it blocks the signals for all threads. The
// first signal is recorded and runs the callbacks; the second one ends the
// process at once, or, behind ExpectSecond(), the third one. One per process.
// Thread-safe. The destructor disarms it and unblocks the signals in its
// thread.
class TerminationSignal {
 public:
  // The exit code of a process that a signal ends at once: 143, or 128 plus the
  // first signal.
  enum class EndCode { kTerminated, kOfFirst };

  explicit TerminationSignal(EndCode end_code = EndCode::kTerminated);
  ~TerminationSignal();
  TerminationSignal(const TerminationSignal&) = delete;
  TerminationSignal& operator=(const TerminationSignal&) = delete;

  // Runs `callback` on another thread at the first signal, or at once if that
  // has already come. Callbacks run in the order in which they were added.
  void OnSignal(std::function<void()> callback);

  // Waits for a running callback and drops the others for good. Must be called
  // before the objects that the callbacks refer to are destroyed. A second
  // signal still ends the process. May be called twice, from one thread that is
  // not a callback's.
  void Disarm();

  // Says that this process looks at count(), and ends by itself at the second
  // signal.
  void ExpectSecond();

  // Returns the first signal, SIGTERM or SIGINT; 0 if none has come.
  int signal() const;
  // Returns how many have come.
  int count() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace parasol

#endif  // PARASOL_BASE_PROCESS_H_

// The `remote_task` binary: the guard of a task that a launcher on another host
// has started over ssh.

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/resource_limits.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "cluster/trust/job_token.h"
#include "cluster/trust/memory_file.h"
#include "deploy/remote/launcher_watch.h"

ABSL_FLAG(std::string, tf_config, "",
          "TF_CONFIG of the command; empty: this process's.");

ABSL_FLAG(bool, takes_token, false,
          "The first line of stdin is a job's token, which the command gets "
          "as --token_file.");

namespace parasol {
namespace {

constexpr char kUsage[] =
    "Runs a command and ends with its exit code. Kills it when stdin ends, or "
    "brings nothing for a minute: then the launcher that has started it over "
    "ssh is gone. `deploy/local/launch --hosts` uses it on each host.\n"
    "\n"
    "  remote_task --tf_config=JSON -- /path/of/worker --data_dir=DIR ...";

// How soon the end of the task is noticed.
constexpr int kTickMilliseconds = 100;

using Verdict = LauncherWatch::Verdict;

// One task, from its start to its end.
class Guard {
 public:
  Guard(Subprocess& task, const TerminationSignal& termination, Clock& clock)
      : task_(task),
        termination_(termination),
        clock_(clock),
        watch_(clock.Now()) {}

  // Returns when the task has ended.
  ProcessEnd Run();

 private:
  // Hears the launcher, for one tick at most.
  void Listen();
  void Terminate();
  void Kill();

  Subprocess& task_;
  const TerminationSignal& termination_;
  Clock& clock_;
  LauncherWatch watch_;
  bool hears_ = true;
  bool has_terminated_ = false;
};

ProcessEnd Guard::Run() {
  while (true) {
    if (const std::optional<ProcessEnd> end = task_.Poll()) return *end;
    const Verdict verdict = watch_.VerdictAt(clock_.Now());
    if (verdict == Verdict::kKill) Kill();
    if (verdict == Verdict::kTerminate || termination_.signal() != 0) {
      Terminate();
    }
    Listen();
  }
}

void Guard::Listen() {
  pollfd input = {hears_ ? STDIN_FILENO : -1, POLLIN, 0};
  if (poll(&input, 1, kTickMilliseconds) <= 0) return;
  char bytes[256];
  const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (count < 0 && errno == EINTR) return;
  if (count <= 0) hears_ = false;
  watch_.Received(
      absl::string_view(bytes, count > 0 ? static_cast<size_t>(count) : 0),
      clock_.Now());
}

void Guard::Terminate() {
  if (!has_terminated_) task_.Terminate();
  has_terminated_ = true;
}

// Kills also what the task may have started. Until Poll() has told the task's
// end, no other group can have its number.
void Guard::Kill() {
  if (hears_) {
    fprintf(stderr, "remote_task: no word from the launcher: the task ends\n");
  }
  kill(-task_.pid(), SIGKILL);
}

// Returns the first line of stdin. The launcher's signs of life follow it.
absl::StatusOr<std::string> ReadToken() {
  std::string line;
  char next = 0;
  while (line.size() < JobToken::kMaxBytes) {
    const ssize_t count = read(STDIN_FILENO, &next, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    if (next == '\n') return line;
    line.push_back(next);
  }
  return absl::InvalidArgumentError("--takes_token: stdin has no token");
}

absl::StatusOr<ProcessEnd> RunGuarded(const std::vector<std::string>& command,
                                      const TerminationSignal& termination) {
  if (command.empty()) {
    return absl::InvalidArgumentError("no command; try --help");
  }
  SubprocessOptions options;
  options.argv = command;
  MemoryFile token;
  if (absl::GetFlag(FLAGS_takes_token)) {
    ASSIGN_OR_RETURN(const std::string text, ReadToken());
    RETURN_IF_ERROR(token.Replace(text));
    options.argv.push_back(absl::StrCat("--token_file=", token.path()));
  }
  if (const std::string tf_config = absl::GetFlag(FLAGS_tf_config);
      !tf_config.empty()) {
    options.environment = {{"TF_CONFIG", tf_config}};
  }
  options.own_process_group = true;
  ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> task,
                   Subprocess::Start(options));
  return Guard(*task, termination, Clock::Real()).Run();
}

int Main(int argc, char** argv) {
  const std::vector<std::string> command = ParseCommandLine(argc, argv, kUsage);
  ApplySystemLimits();
  // Outputs end with the connection, the guard later.
  signal(SIGPIPE, SIG_IGN);
  const TerminationSignal termination;
  const absl::StatusOr<ProcessEnd> end = RunGuarded(command, termination);
  return end.ok() ? end->code() : ExitWith(end.status());
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) { return parasol::Main(argc, argv); }

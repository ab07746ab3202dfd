#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/log_fields.h"
#include "base/shown_text.h"
#include "base/version.h"

namespace parasol {

// Found by Abseil's flags next to the enum.
bool AbslParseFlag(absl::string_view text, LogFormat* format,
                   std::string* error) {
  if (text != "text" && text != "json") {
    *error = "it is text or json";
    return false;
  }
  *format = text == "json" ? LogFormat::kJson : LogFormat::kText;
  return true;
}

std::string AbslUnparseFlag(LogFormat format) {
  return format == LogFormat::kJson ? "json" : "text";
}

}  // namespace parasol

ABSL_FLAG(parasol::LogFormat, log_format, parasol::LogFormat::kText,
          "How log lines are written to stderr: text or json.");

namespace parasol {
namespace {

// "<binary>: <message>" as one line on stderr, in one write; or a line of the
// log, if that is JSON.
void PrintError(absl::string_view message, ExitCode code) {
  const std::string line =
      OneLine(absl::StrReplaceAll(message, {{"\n", " "}, {"\r", " "}}));
  if (absl::GetFlag(FLAGS_log_format) == LogFormat::kJson) {
    LOG(ERROR) << line
               << LogFields()
                      .AddText("binary", program_invocation_short_name)
                      .AddCount("exit_code", static_cast<int>(code));
    return;
  }
  fputs(absl::StrCat(program_invocation_short_name, ": ", line, "\n").c_str(),
        stderr);
}

// Makes the log JSON if an argument asks for it: those behind a wrong one were
// not read.
void ReadLogFormat(int argc, char** argv, FlagNames flags) {
  if (!flags.empty() &&
      std::find(flags.begin(), flags.end(), "log_format") == flags.end()) {
    return;
  }
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (argument == "--") return;
    if (!absl::ConsumePrefix(&argument, "-")) continue;
    absl::ConsumePrefix(&argument, "-");
    const bool is_next = argument == "log_format" && i + 1 < argc;
    if (argument == "log_format=json" ||
        (is_next && absl::string_view(argv[i + 1]) == "json")) {
      absl::SetFlag(&FLAGS_log_format, LogFormat::kJson);
      NameTaskInLog("");
    }
  }
}

sigset_t TerminationSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

ExitCode ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kBadConfiguration;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kRetryable;
    case absl::StatusCode::kCancelled:
      return ExitCode::kTerminated;
    default:
      return ExitCode::kPermanentFailure;
  }
}

int ExitWith(const absl::Status& status) {
  const ExitCode code = ExitCodeFor(status);
  if (!status.ok()) PrintError(status.message(), code);
  return static_cast<int>(code);
}

std::vector<std::string> ParseCommandLine(int argc, char** argv,
                                          absl::string_view usage,
                                          FlagNames flags) {
  absl::StatusOr<CommandLine> line =
      ParseFlags(std::vector<std::string>(argv + 1, argv + argc), flags);
  if (!line.ok()) {
    ReadLogFormat(argc, argv, flags);
    PrintError(absl::StrCat(line.status().message(), "; try --help"),
               ExitCode::kBadConfiguration);
    exit(static_cast<int>(ExitCode::kBadConfiguration));
  }
  if (line->help || line->version) {
    const std::string text = line->help ? HelpText(usage, flags)
                                        : absl::StrCat(VersionString(), "\n");
    fputs(text.c_str(), stdout);
    exit(static_cast<int>(ExitCode::kDone));
  }
  NameTaskInLog("");
  // A checkpoint that exceeds a limit fails by name, and training goes on.
  signal(SIGXFSZ, SIG_IGN);
  // Debian builds Abseil with it on: 5 to 8 % of a push.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return std::move(line->positional);
}

void ParseFlagsAlone(int argc, char** argv, absl::string_view usage) {
  const std::vector<std::string> rest = ParseCommandLine(argc, argv, usage);
  if (rest.empty()) return;
  PrintError(absl::StrCat("unexpected argument ", rest[0], "; try --help"),
             ExitCode::kBadConfiguration);
  exit(static_cast<int>(ExitCode::kBadConfiguration));
}

std::string VersionString() {
  return absl::StrCat("parasol ", kVersion, " (commit ", BuildCommit(), ")");
}

void NameTaskInLog(absl::string_view task) {
  ConfigureLog(absl::GetFlag(FLAGS_log_format), task);
}

// One thread reads the signals, another runs the callbacks: a drain that takes
// long must not keep the second signal from being seen.
struct TerminationSignal::State {
  void Watch();
  void RunCallbacks();

  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return stopping || (signal != 0 && !callbacks.empty());
  }

  sigset_t previous_mask;
  int signal_fd = -1;
  int stop_fd = -1;  // readable once the watcher is to end
  absl::Mutex mu;
  EndCode end_code = EndCode::kTerminated;
  int signal ABSL_GUARDED_BY(mu) = 0;  // the first one
  int count ABSL_GUARDED_BY(mu) = 0;
  int last ABSL_GUARDED_BY(mu) = 2;  // number of the one that ends the process
  bool stopping ABSL_GUARDED_BY(mu) = false;
  std::deque<std::function<void()>> callbacks ABSL_GUARDED_BY(mu);
  std::thread watcher;
  std::thread runner;
};

void TerminationSignal::State::Watch() {
  pollfd fds[] = {{signal_fd, POLLIN, 0}, {stop_fd, POLLIN, 0}};
  while (true) {
    if (poll(fds, 2, -1) < 0) continue;  // EINTR
    if (fds[1].revents != 0) return;
    signalfd_siginfo info;
    if (read(signal_fd, &info, sizeof(info)) != sizeof(info)) continue;
    absl::MutexLock lock(&mu);
    if (++count == 1) signal = static_cast<int>(info.ssi_signo);
    if (count < last) continue;
    _exit(end_code == EndCode::kOfFirst
              ? 128 + signal
              : static_cast<int>(ExitCode::kTerminated));
  }
}

void TerminationSignal::State::RunCallbacks() {
  while (true) {
    std::function<void()> callback;
    {
      absl::MutexLock lock(&mu);
      mu.Await(absl::Condition(this, &State::HasWork));
      if (stopping) return;
      callback = std::move(callbacks.front());
      callbacks.pop_front();
    }
    callback();
  }
}

TerminationSignal::TerminationSignal(EndCode end_code)
    : state_(std::make_unique<State>()) {
  state_->end_code = end_code;
  const sigset_t signals = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &signals, &state_->previous_mask);
  state_->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
  state_->stop_fd = eventfd(0, EFD_CLOEXEC);
  CHECK(state_->signal_fd >= 0 && state_->stop_fd >= 0) << "errno " << errno;
  state_->watcher = std::thread(&State::Watch, state_.get());
  state_->runner = std::thread(&State::RunCallbacks, state_.get());
}

TerminationSignal::~TerminationSignal() {
  Disarm();
  const uint64_t one = 1;
  CHECK_EQ(write(state_->stop_fd, &one, sizeof(one)),
           static_cast<ssize_t>(sizeof(one)));
  state_->watcher.join();
  close(state_->signal_fd);
  close(state_->stop_fd);
  pthread_sigmask(SIG_SETMASK, &state_->previous_mask, nullptr);
}

void TerminationSignal::OnSignal(std::function<void()> callback) {
  absl::MutexLock lock(&state_->mu);
  state_->callbacks.push_back(std::move(callback));
}

void TerminationSignal::Disarm() {
  {
    absl::MutexLock lock(&state_->mu);
    state_->stopping = true;
  }
  if (state_->runner.joinable()) state_->runner.join();
}

void TerminationSignal::ExpectSecond() {
  absl::MutexLock lock(&state_->mu);
  state_->last = 3;
}

int TerminationSignal::count() const {
  absl::MutexLock lock(&state_->mu);
  return state_->count;
}

int TerminationSignal::signal() const {
  absl::MutexLock lock(&state_->mu);
  return state_->signal;
}

}  // namespace parasol

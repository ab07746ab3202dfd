#include "base/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"

extern char** environ;

namespace parasol {
namespace {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct PipeEnds {
  Fd read;
  Fd write;
};

absl::StatusOr<PipeEnds> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  return PipeEnds{Fd(fds[0]), Fd(fds[1])};
}

// What the child puts in place of its fd 0, 1 or 2 (-1: leaves it), and the
// parent's side of it.
struct Redirection {
  Fd child_end;
  Fd parent_end;
};

absl::StatusOr<Redirection> OpenOutput(const OutputTo& output) {
  Redirection redirection;
  switch (output.kind) {
    case OutputTo::Kind::kInherit:
      break;
    case OutputTo::Kind::kFile:
      redirection.child_end =
          Fd(open(output.path.c_str(),
                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
      if (redirection.child_end.get() < 0) {
        return absl::ErrnoToStatus(errno, output.path);
      }
      break;
    case OutputTo::Kind::kPipe: {
      ASSIGN_OR_RETURN(PipeEnds ends, MakePipe());
      redirection.child_end = std::move(ends.write);
      redirection.parent_end = std::move(ends.read);
      break;
    }
  }
  return redirection;
}

absl::StatusOr<Redirection> OpenInput(bool socket) {
  Redirection redirection;
  if (!socket) {
    redirection.child_end = Fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    return redirection;
  }
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  redirection.child_end = Fd(fds[0]);
  redirection.parent_end = Fd(fds[1]);
  return redirection;
}

// This process's environment with `added` in it, as "NAME=value".
std::vector<std::string> Environment(
    const std::map<std::string, std::string>& added) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) {
      environment.push_back(text);
    }
  }
  for (const auto& [name, value] : added) {
    environment.push_back(absl::StrCat(name, "=", value));
  }
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// All that the child needs, made before fork(): another thread of the parent
// may hold the allocator's lock at that moment, so the child allocates nothing.
struct ChildPlan {
  char** argv;
  char** environment;
  int standard_input;
  int standard_output;
  int standard_error;
  int error_pipe;  // exec's errno goes there
  bool own_process_group;
  pid_t parent;
};

[[noreturn]] void RunChild(const ChildPlan& plan) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  if (getppid() != plan.parent) _exit(127);
  if (plan.own_process_group) setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  dup2(plan.standard_input, STDIN_FILENO);
  if (plan.standard_output >= 0) dup2(plan.standard_output, STDOUT_FILENO);
  if (plan.standard_error >= 0) dup2(plan.standard_error, STDERR_FILENO);
  close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
  execve(plan.argv[0], plan.argv, plan.environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written =
      write(plan.error_pipe, &error, sizeof(error));
  _exit(127);
}

ProcessEnd FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) return {.exit_code = 0, .signal = WTERMSIG(status)};
  return {.exit_code = WEXITSTATUS(status), .signal = 0};
}

int PollMilliseconds(absl::Duration duration) {
  // Rounded up, so that a wait never ends before its limit.
  return absl::ToInt64Milliseconds(
      absl::Ceil(std::min(duration, absl::Hours(1)), absl::Milliseconds(1)));
}

// Reads from `fd` once; false at the end of it.
bool ReadOnce(int fd, std::string& text) {
  char buffer[65536];
  const ssize_t count = read(fd, buffer, sizeof(buffer));
  if (count < 0) return errno == EINTR;
  text.append(buffer, count);
  return count > 0;
}

}  // namespace

std::string Describe(const ProcessEnd& end) {
  if (end.signal == 0) return absl::StrCat("exit code ", end.exit_code);
  return absl::StrCat("signal ", end.signal, " (", strsignal(end.signal), ")");
}

absl::StatusOr<std::unique_ptr<Subprocess>> Subprocess::Start(
    const SubprocessOptions& options) {
  if (options.argv.empty()) return absl::InvalidArgumentError("no command");
  ASSIGN_OR_RETURN(Redirection input, OpenInput(options.input_socket));
  ASSIGN_OR_RETURN(Redirection output, OpenOutput(options.standard_output));
  ASSIGN_OR_RETURN(Redirection error, OpenOutput(options.standard_error));
  ASSIGN_OR_RETURN(PipeEnds exec_error, MakePipe());
  std::vector<std::string> argv = options.argv;
  std::vector<std::string> environment = Environment(options.environment);
  std::vector<char*> argv_pointers = Pointers(argv);
  std::vector<char*> environment_pointers = Pointers(environment);
  const ChildPlan plan = {
      .argv = argv_pointers.data(),
      .environment = environment_pointers.data(),
      .standard_input = input.child_end.get(),
      .standard_output = output.child_end.get(),
      .standard_error = error.child_end.get(),
      .error_pipe = exec_error.write.get(),
      .own_process_group = options.own_process_group,
      .parent = getpid(),
  };
  const pid_t pid = fork();
  if (pid < 0) return absl::ResourceExhaustedError("fork: no process is left");
  if (pid == 0) RunChild(plan);
  std::unique_ptr<Subprocess> child(new Subprocess(pid));
  // glibc 2.36 declares pidfd_open() without C linkage.
  child->pid_fd_ = syscall(SYS_pidfd_open, pid, 0);
  if (child->pid_fd_ < 0) return absl::ErrnoToStatus(errno, "pidfd_open");
  child->input_socket_ = input.parent_end.release();
  child->output_pipe_ = output.parent_end.release();
  child->error_pipe_ = error.parent_end.release();
  // A successful exec closes the pipe without a word.
  exec_error.write = Fd();
  int exec_errno = 0;
  if (read(exec_error.read.get(), &exec_errno, sizeof(exec_errno)) ==
      sizeof(exec_errno)) {
    return absl::ErrnoToStatus(exec_errno, options.argv[0]);
  }
  return child;
}

Subprocess::~Subprocess() {
  Kill();
  if (!end_.has_value()) waitpid(pid_, nullptr, 0);
  for (const int fd : {pid_fd_, input_socket_, output_pipe_, error_pipe_}) {
    if (fd >= 0) close(fd);
  }
}

void Subprocess::Signal(int signal) {
  // Until it is reaped its pid can't be given to another process.
  if (!Poll().has_value()) kill(pid_, signal);
}

void Subprocess::Terminate() { Signal(SIGTERM); }

void Subprocess::Kill() { Signal(SIGKILL); }

bool Subprocess::WriteInput(absl::string_view bytes) {
  const ssize_t written = send(input_socket_, bytes.data(), bytes.size(),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
  return written == static_cast<ssize_t>(bytes.size());
}

std::optional<ProcessEnd> Subprocess::Poll() {
  int status = 0;
  if (!end_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) {
    end_ = FromWaitStatus(status);
  }
  return end_;
}

absl::StatusOr<ProcessEnd> Subprocess::Wait(absl::Duration limit) {
  const absl::Time deadline = Clock::Real().Now() + limit;
  while (!Poll().has_value()) {
    const absl::Duration left = deadline - Clock::Real().Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat(
          "process ", pid_, " still runs after ", absl::FormatDuration(limit)));
    }
    pollfd fd = {pid_fd_, POLLIN, 0};
    poll(&fd, 1, PollMilliseconds(left));
  }
  return *end_;
}

absl::StatusOr<CompletedProcess> RunSubprocess(SubprocessOptions options,
                                               absl::Duration limit) {
  options.standard_output = OutputTo::Pipe();
  options.standard_error = OutputTo::Pipe();
  const absl::Time deadline = Clock::Real().Now() + limit;
  ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> child,
                   Subprocess::Start(options));
  CompletedProcess completed;
  pollfd fds[] = {{child->output_pipe(), POLLIN, 0},
                  {child->error_pipe(), POLLIN, 0}};
  std::string* const texts[] = {&completed.standard_output,
                                &completed.standard_error};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const absl::Duration left = deadline - Clock::Real().Now();
    if (left <= absl::ZeroDuration()) break;
    if (poll(fds, 2, PollMilliseconds(left)) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      if (!ReadOnce(fds[i].fd, *texts[i])) fds[i].fd = -1;
    }
  }
  ASSIGN_OR_RETURN(completed.end, child->Wait(deadline - Clock::Real().Now()),
                   _ << options.argv[0]);
  return completed;
}

}  // namespace parasol

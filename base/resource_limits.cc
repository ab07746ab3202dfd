#include "base/resource_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/descriptor.h"
#include "base/process.h"

namespace parasol {
namespace {

// Threads of the smallest task, about: gRPC's, a server's and one that
// computes.
constexpr int kLeastThreads = 24;

int64_t ToCount(rlim_t limit) {
  return limit == RLIM_INFINITY ? INT64_MAX : static_cast<int64_t>(limit);
}

// Where threads of a check wait for each other.
struct Gate {
  absl::Mutex mu;
  bool is_open ABSL_GUARDED_BY(mu) = false;
};

void* WaitAtGate(void* gate) {
  Gate& at = *static_cast<Gate*>(gate);
  absl::MutexLock lock(&at.mu);
  at.mu.Await(absl::Condition(&at.is_open));
  return nullptr;
}

std::string ThreadsHint(int error) {
  rlimit limit = {};
  getrlimit(RLIMIT_NPROC, &limit);
  const std::string most = limit.rlim_cur == RLIM_INFINITY
                               ? "unlimited"
                               : absl::StrCat(limit.rlim_cur);
  return absl::StrCat(
      "no thread can be started: ", std::strerror(error),
      "; raise the limit of processes and threads (ulimit -u, which is ", most,
      ", or pids.max of the container)");
}

std::terminate_handler& PreviousTerminate() {
  static std::terminate_handler previous = nullptr;
  return previous;
}

[[noreturn]] void NameLimitAndEnd() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::resource_unavailable_try_again) {
        _exit(ExitWith(absl::InvalidArgumentError(ThreadsHint(EAGAIN))));
      }
    } catch (...) {
      // Not ours to name.
    }
  }
  if (PreviousTerminate() != nullptr) PreviousTerminate()();
  std::abort();
}

}  // namespace

int64_t RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t most =
      std::min<rlim_t>(limit.rlim_max, static_cast<rlim_t>(kMostDescriptors));
  if (limit.rlim_cur < most) {
    limit.rlim_cur = most;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return DescriptorLimit();
}

int64_t DescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return ToCount(limit.rlim_cur);
}

bool IsOutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS ||
         error == ENOMEM;
}

std::string DescriptorsHint() {
  return absl::StrCat("no file or connection can be opened beside those that ",
                      "are open: raise the limit of descriptors (ulimit -n, ",
                      "which is ", DescriptorLimit(), ")");
}

absl::Status CheckDescriptorsAreLeft(int count) {
  std::vector<Descriptor> opened;
  for (int i = 0; i < count; ++i) {
    opened.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (opened.back().is_open()) continue;
    return IsOutOfDescriptors(errno)
               ? absl::InvalidArgumentError(DescriptorsHint())
               : absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status CheckThreadsAllowed(int count) {
  return CheckThreadsAllowed(
      count, [](pthread_t* thread, void* (*run)(void*), void* arg) {
        return pthread_create(thread, nullptr, run, arg);
      });
}

absl::Status CheckThreadsAllowed(int count, ThreadStarter start) {
  Gate gate;
  std::vector<pthread_t> threads;
  int error = 0;
  for (int i = 0; i < count && error == 0; ++i) {
    pthread_t thread;
    error = start(&thread, &WaitAtGate, &gate);
    if (error == 0) threads.push_back(thread);
  }
  {
    absl::MutexLock lock(&gate.mu);
    gate.is_open = true;
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  if (error == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(ThreadsHint(error), ": ",
                                                 threads.size(), " of ", count,
                                                 " could be started"));
}

void NameThreadLimitAtEnd() {
  if (std::get_terminate() == &NameLimitAndEnd) return;
  PreviousTerminate() = std::set_terminate(&NameLimitAndEnd);
}

void ApplySystemLimits() {
  RaiseDescriptorLimit();
  NameThreadLimitAtEnd();
  const absl::Status threads = CheckThreadsAllowed(kLeastThreads);
  if (!threads.ok()) std::exit(ExitWith(threads));
}

}  // namespace parasol

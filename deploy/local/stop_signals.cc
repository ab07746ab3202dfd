#include "deploy/local/stop_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <thread>

#include "base/log.h"

namespace parasol {

struct StopSignals::State {
  void Watch();

  sigset_t previous_mask;
  int signal_fd = -1;
  int stop_fd = -1;  // readable once the watcher is to end
  std::atomic<int> first = 0;
  std::atomic<int> count = 0;
  std::atomic<int> last = 2;  // number of the one that ends the process
  std::thread watcher;
};

void StopSignals::State::Watch() {
  pollfd fds[] = {{signal_fd, POLLIN, 0}, {stop_fd, POLLIN, 0}};
  while (true) {
    if (poll(fds, 2, -1) < 0) continue;  // EINTR
    if (fds[1].revents != 0) return;
    signalfd_siginfo info;
    if (read(signal_fd, &info, sizeof(info)) != sizeof(info)) continue;
    if (count == 0) first = static_cast<int>(info.ssi_signo);
    if (++count >= last) _exit(128 + first);
  }
}

StopSignals::StopSignals() : state_(std::make_unique<State>()) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, &state_->previous_mask);
  state_->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
  state_->stop_fd = eventfd(0, EFD_CLOEXEC);
  CHECK(state_->signal_fd >= 0 && state_->stop_fd >= 0) << "errno " << errno;
  state_->watcher = std::thread(&State::Watch, state_.get());
}

StopSignals::~StopSignals() {
  const uint64_t one = 1;
  CHECK_EQ(write(state_->stop_fd, &one, sizeof(one)),
           static_cast<ssize_t>(sizeof(one)));
  state_->watcher.join();
  close(state_->signal_fd);
  close(state_->stop_fd);
  pthread_sigmask(SIG_SETMASK, &state_->previous_mask, nullptr);
}

void StopSignals::ExpectSecond() { state_->last = 3; }

int StopSignals::first() const { return state_->first; }

int StopSignals::count() const { return state_->count; }

}  // namespace parasol

#include "cluster/payload_lane/socket_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"

namespace parasol {
namespace {

constexpr int kMaxEvents = 64;

}  // namespace

SocketLoop::SocketLoop()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(epoll_.is_open() && wake_.is_open());
  epoll_event event = {};
  event.events = EPOLLIN;
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0);
  thread_ = std::thread([this] { Run(); });
}

SocketLoop::~SocketLoop() {
  Post([this] { stopped_ = true; });
  thread_.join();
}

void SocketLoop::Post(Task task) {
  {
    absl::MutexLock lock(&mu_);
    tasks_.push_back(std::move(task));
    if (std::exchange(woken_, true)) return;
  }
  // A loop that is awake looks at its tasks before it waits.
  if (IsThisThread()) return;
  const uint64_t one = 1;
  CHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one));
}

void SocketLoop::PostLater(absl::Duration delay, Task task) {
  later_.emplace(
      std::chrono::steady_clock::now() + absl::ToChronoMicroseconds(delay),
      std::move(task));
}

void SocketLoop::Watch(int fd, Handler& handler) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &handler;
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
}

void SocketLoop::Forget(int fd, Handler& handler) {
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0);
  std::replace(ready_.begin(), ready_.end(), &handler,
               static_cast<Handler*>(nullptr));
}

int SocketLoop::NextWait() const {
  if (later_.empty()) return -1;
  const auto wait = later_.begin()->first - std::chrono::steady_clock::now();
  if (wait <= wait.zero()) return 0;
  return static_cast<int>(
      std::chrono::ceil<std::chrono::milliseconds>(wait).count());
}

bool SocketLoop::RunTasks() {
  std::vector<Task> tasks;
  {
    absl::MutexLock lock(&mu_);
    tasks = std::exchange(tasks_, {});
  }
  for (const Task& task : tasks) task();
  // What they hold may post as it goes.
  tasks.clear();
  absl::MutexLock lock(&mu_);
  // The next Post() has to wake a loop that waits.
  woken_ = !tasks_.empty();
  return woken_;
}

void SocketLoop::Run() {
  std::array<epoll_event, kMaxEvents> events;
  while (true) {
    const bool has_more = RunTasks();
    if (stopped_ && !has_more) return;
    const int count = epoll_wait(epoll_.get(), events.data(), kMaxEvents,
                                 has_more ? 0 : NextWait());
    CHECK(count >= 0 || errno == EINTR);
    {
      // Posts of this round need no wake.
      absl::MutexLock lock(&mu_);
      woken_ = true;
    }
    ready_.clear();
    for (int i = 0; i < count; ++i) {
      ready_.push_back(static_cast<Handler*>(events[i].data.ptr));
    }
    for (int i = 0; i < count; ++i) {
      if (events[i].data.ptr == nullptr) {
        uint64_t wakes;
        (void)!read(wake_.get(), &wakes, sizeof(wakes));
      } else if (ready_[i] != nullptr) {
        ready_[i]->OnEvents(events[i].events);
      }
    }
    const SteadyTime now = std::chrono::steady_clock::now();
    while (!later_.empty() && later_.begin()->first <= now) {
      const Task task = std::move(later_.begin()->second);
      later_.erase(later_.begin());
      task();
    }
  }
}

}  // namespace parasol

#include "cluster/collective/socket_collective.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/log.h"
#include "cluster/collective/contribution_memory.h"

namespace parasol {
namespace {

// Longest wait of a rank that leaves for the others to hear of it.
constexpr absl::Duration kLinger = absl::Seconds(1);
constexpr int kLingerPollMillis = 5;

// Returns true if each rank of this one's machine can have a core of its own.
// With fewer cores a rank that looks for messages keeps others from sending.
// Knows neither a container's share of the cores nor other programs; a rank
// that looks in vain soon looks for less time (Spinning).
bool HaveCoresEach(const CollectiveGroup& group) {
  const std::vector<int> machines = group.machines();
  return std::count(machines.begin(), machines.end(),
                    machines[group.own_rank]) <=
         static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

SocketCollective::SocketCollective(CollectiveGroup group,
                                   std::map<int, Descriptor> connected,
                                   const Options& options, Clock& clock)
    : group_(std::move(group)),
      options_(options),
      clock_(clock),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      may_spin_(HaveCoresEach(group_)),
      protocol_(group_, options.protocol, clock.Now()),
      turns_({.work = [this](absl::Duration limit) { Work(limit); },
              .interrupt = [this] { Interrupt(); },
              .has_work = [this] { return pending_ > 0; }}) {
  CHECK(wake_.is_open());
  absl::MutexLock lock(&mu_);
  for (auto& [rank, socket] : connected) {
    links_.push_back(
        std::make_unique<RankLink>(std::move(socket), rank, group_.epoch));
  }
}

SocketCollective::~SocketCollective() {
  if (options_.newest != nullptr) options_.newest->Clear(this);
  turns_.Stop();
  Leave(absl::CancelledError("the rank has left the group"));
  RunCompletions();
  turns_.WorkToEnd();
  Linger();
}

void NewestGroup::End(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (group_ != nullptr) group_->Leave(why);
  group_ = nullptr;
}

void SocketCollective::Interrupt() {
  const uint64_t one = 1;
  // A counter that is full wakes, too.
  (void)!write(wake_.get(), &one, sizeof(one));
}

void SocketCollective::Begin(const OperationSpec& spec, OperationMemory memory,
                             Done done) {
  ++pending_;
  {
    absl::MutexLock lock(&mu_);
    protocol_.Begin(spec, std::move(memory), std::move(done));
    Flush();
    // A thread that waits for the sockets does not know that they are full.
    if (WantsToSend()) Interrupt();
  }
  RunCompletions();
  turns_.NoteBegun();
}

bool SocketCollective::WantsToSend() const {
  return std::any_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->wants_to_send(); });
}

absl::Status SocketCollective::Await() {
  ++awaiting_;
  turns_.WorkToEnd();
  --awaiting_;
  return status();
}

std::vector<int> SocketCollective::Awaited() const {
  absl::MutexLock lock(&mu_);
  return protocol_.Awaited();
}

void SocketCollective::Abort(const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    protocol_.Abort(why);
    Flush();
  }
  RunCompletions();
}

void SocketCollective::SetOnEnd(std::function<void()> on_end) {
  {
    absl::MutexLock lock(&mu_);
    on_end_ = std::move(on_end);
  }
  RunCompletions();
}

void SocketCollective::Leave(const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    has_left_ |= protocol_.status().ok();
    protocol_.Leave(why);
    Flush();
  }
  Interrupt();
}

bool SocketCollective::has_left() const {
  absl::MutexLock lock(&mu_);
  return has_left_;
}

absl::Status SocketCollective::status() const {
  absl::MutexLock lock(&mu_);
  return protocol_.status();
}

void SocketCollective::UseLane(int peer, std::unique_ptr<PieceLane> lane) {
  absl::MutexLock lock(&mu_);
  for (const auto& link : links_) {
    if (link->peer() == peer) link->UseLane(std::move(lane));
  }
}

void SocketCollective::SendByLanes(const std::vector<int>& peers) {
  absl::MutexLock lock(&mu_);
  for (const auto& link : links_) {
    if (std::count(peers.begin(), peers.end(), link->peer()) > 0) {
      link->SendByLane();
    }
  }
}

std::shared_ptr<float[]> SocketCollective::AllocateContribution(size_t count) {
  return AllocateElements(count);
}

void SocketCollective::Work(absl::Duration limit) {
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
  {
    absl::MutexLock lock(&mu_);
    for (const auto& link : links_) {
      if (!link->is_open()) continue;
      const int events = POLLIN | (link->wants_to_send() ? POLLOUT : 0);
      polled.push_back({link->fd(), static_cast<short>(events), 0});
    }
  }
  Poll(polled, limit);
  if (polled[0].revents != 0) {
    uint64_t wakes;
    (void)!read(wake_.get(), &wakes, sizeof(wakes));
  }
  {
    absl::MutexLock lock(&mu_);
    Receive();
    protocol_.Tick(clock_.Now());
    Flush();
  }
  RunCompletions();
}

void SocketCollective::Poll(std::vector<pollfd>& polled, absl::Duration limit) {
  using SteadyClock = std::chrono::steady_clock;
  // A thread that nobody waits for leaves the core to those who compute.
  const absl::Duration spins = may_spin_ && awaiting_ > 0 && pending_ > 0
                                   ? std::min(limit, spinning_.Next())
                                   : absl::ZeroDuration();
  if (spins > absl::ZeroDuration()) {
    const auto end = SteadyClock::now() + absl::ToChronoMicroseconds(spins);
    int ready = 0;
    while (ready == 0 && SteadyClock::now() < end) {
      ready = poll(polled.data(), polled.size(), 0);
    }
    spinning_.Note(ready > 0);
    if (ready > 0) return;
  }
  poll(polled.data(), polled.size(),
       static_cast<int>(absl::ToInt64Milliseconds(limit)));
}

void SocketCollective::Receive() {
  for (const auto& link : links_) {
    if (link->is_open()) link->Receive(protocol_);
    // Pieces that this one has made ready leave before others come. If it has
    // ended the group, the others have no memory to receive to.
    Flush();
  }
}

void SocketCollective::ReleaseIfEnded() {
  if (protocol_.status().ok() || std::exchange(has_released_, true)) return;
  for (const auto& link : links_) link->ReleaseMemory();
  protocol_.ReleaseOperations();
}

bool SocketCollective::QueueFrames() {
  std::vector<GroupProtocol::Frame> frames = protocol_.TakeFrames();
  for (GroupProtocol::Frame& frame : frames) {
    for (const auto& link : links_) {
      if (link->peer() == frame.peer) link->Queue(std::move(frame));
    }
  }
  return !frames.empty();
}

void SocketCollective::Flush() {
  QueueFrames();
  do {
    ReleaseIfEnded();
    for (const auto& link : links_) {
      if (!link->has_queue()) continue;
      link->Send(protocol_);
      // A link that fails to send has ended the group.
      ReleaseIfEnded();
    }
    // What leaves may make further frames, and so does an end.
  } while (QueueFrames());
}

void SocketCollective::RunCompletions() {
  std::vector<GroupProtocol::Completion> completions;
  std::function<void()> on_end;
  {
    absl::MutexLock lock(&mu_);
    completions = protocol_.TakeCompletions();
    if (!protocol_.status().ok()) on_end = std::exchange(on_end_, nullptr);
  }
  for (GroupProtocol::Completion& each : completions) {
    each.done(each.status);
    each.done = nullptr;
    // Who waits may do so in another call of Work().
    if (--pending_ == 0) Interrupt();
  }
  if (on_end != nullptr) on_end();
}

void SocketCollective::Linger() {
  absl::MutexLock lock(&mu_);
  for (const auto& link : links_) link->FinishSending();
  const auto deadline =
      std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(kLinger);
  while (std::chrono::steady_clock::now() < deadline) {
    std::vector<pollfd> polled;
    for (const auto& link : links_) {
      link->Send(protocol_);
      int unsent = 0;
      if (!link->is_open() || ioctl(link->fd(), SIOCOUTQ, &unsent) != 0) {
        continue;
      }
      if (!link->wants_to_send() && unsent == 0) continue;
      // What the others still send is dropped: data that was not read makes the
      // kernel take back what is on its way.
      while (link->Receive(protocol_)) {
      }
      if (link->is_open()) polled.push_back({link->fd(), POLLIN, 0});
    }
    if (polled.empty()) return;
    poll(polled.data(), polled.size(), kLingerPollMillis);
  }
}

}  // namespace parasol

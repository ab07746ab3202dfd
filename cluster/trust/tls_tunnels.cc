#include "cluster/trust/tls_tunnels.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/trust/tls_channel.h"

namespace parasol {
namespace {

// Bytes of one direction that are on their way.
constexpr size_t kBufferBytes = 256 << 10;
// Time for which the end of a process waits until all has been sent.
constexpr absl::Duration kLinger = absl::Seconds(1);
constexpr int kLingerPollMs = 20;
constexpr absl::Duration kWarningPeriod = absl::Seconds(10);

// Returns "10.0.0.7:41234", the other end of a connected socket.
std::string AddressOfPeer(const Descriptor& socket) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  auto* const address = reinterpret_cast<sockaddr*>(&peer);
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getpeername(socket.get(), address, &size) != 0 ||
      getnameinfo(address, size, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "a peer that is gone";
  }
  if (peer.ss_family == AF_UNIX) return "a process of this machine";
  return peer.ss_family == AF_INET6 ? absl::StrCat("[", host, "]:", port)
                                    : absl::StrCat(host, ":", port);
}

}  // namespace

// One tunnel. Used by its loop's thread.
class TlsTunnels::Tunnel {
 public:
  Tunnel(Descriptor network, Descriptor local, Keys keys, PeerSide own,
         PeerRole peer, Clock& clock)
      : address_(AddressOfPeer(network)),
        local_(std::move(local)),
        channel_(std::move(keys), std::move(network), own, {.role = peer},
                 clock) {}

  // Returns what to wait for: on the network, and on the local socket.
  pollfd NetworkEvents() const {
    // What has ended always has an event.
    const bool reads =
        !network_ended_ && (!channel_.has_peer() || incoming_.IsEmpty());
    const bool writes = channel_.has_unsent();
    return {reads || writes ? channel_.socket().get() : -1,
            static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)),
            0};
  }
  pollfd LocalEvents() const {
    const bool reads =
        channel_.has_peer() && outgoing_.IsEmpty() && !local_ended_;
    return {reads || !incoming_.IsEmpty() ? local_.get() : -1,
            static_cast<short>((reads ? POLLIN : 0) |
                               (incoming_.IsEmpty() ? 0 : POLLOUT)),
            0};
  }

  // Returns true if the peer has not been sent all that its user wrote.
  bool HasToSend() const {
    return channel_.has_peer() && (!has_said_end_ || channel_.has_unsent());
  }

  // Does what is possible. Returns false when the tunnel has ended.
  bool Advance() {
    for (bool progress = true; progress;) {
      progress = false;
      if (!MoveOut(progress) || !MoveIn(progress)) return false;
      if (local_ended_ && outgoing_.IsEmpty() && !SayEnd()) return false;
      if (network_ended_ && incoming_.IsEmpty()) {
        if (local_ended_ && has_said_end_) return false;
        if (!std::exchange(has_told_end_, true)) {
          shutdown(local_.get(), SHUT_WR);
        }
      }
    }
    return !(has_said_end_ && has_told_end_);
  }

 private:
  struct Buffer {
    std::vector<char> bytes = std::vector<char>(kBufferBytes);
    size_t begin = 0;
    size_t end = 0;
    bool IsEmpty() const { return begin == end; }
    iovec Rest() { return {bytes.data() + begin, end - begin}; }
  };

  // Tells the peer that its user has ended. Returns false if that can't be.
  bool SayEnd() {
    if (has_said_end_ || !channel_.has_peer()) return true;
    if (!channel_.SayEnd().ok()) return false;
    if (channel_.has_unsent()) return true;
    has_said_end_ = true;
    shutdown(channel_.socket().get(), SHUT_WR);
    return true;
  }

  void Warn(const absl::Status& status) const {
    if (absl::IsUnauthenticated(status)) {
      LOG_EVERY(WARNING, kWarningPeriod)
          << "refused a connection with " << address_ << ": "
          << status.message();
    } else if (!channel_.has_peer()) {
      LOG_EVERY(WARNING, kWarningPeriod) << "the connection with " << address_
                                         << " has ended: " << status.message();
    }
  }

  // From the local socket to the network. Returns false if that is broken.
  bool MoveOut(bool& progress) {
    if (channel_.has_peer() && outgoing_.IsEmpty() && !local_ended_) {
      const ssize_t count = recv(local_.get(), outgoing_.bytes.data(),
                                 kBufferBytes, MSG_DONTWAIT);
      // A user who leaves without having read all resets the socket, once what
      // it wrote has been read.
      local_ended_ = count == 0 || (count < 0 && errno == ECONNRESET);
      if (count < 0 && !local_ended_ && errno != EAGAIN && errno != EINTR) {
        return false;
      }
      outgoing_.begin = 0;
      outgoing_.end = count > 0 ? count : 0;
    }
    while (!outgoing_.IsEmpty() || channel_.has_unsent()) {
      const iovec rest = outgoing_.Rest();
      const absl::StatusOr<size_t> sent = channel_.Send({&rest, 1});
      if (!sent.ok() && !channel_.has_peer()) {
        Warn(sent.status());
        return false;
      }
      if (!sent.ok()) {
        // Nobody hears it any more; what the peer has sent before is read.
        outgoing_.begin = outgoing_.end;
        has_said_end_ = true;
        break;
      }
      if (*sent == 0) break;
      outgoing_.begin += *sent;
      progress = true;
    }
    return true;
  }

  // From the network to the local socket. Returns false if nothing more comes,
  // and nothing was left to hand on.
  bool MoveIn(bool& progress) {
    if (incoming_.IsEmpty() && !network_ended_) {
      const iovec room = {incoming_.bytes.data(), kBufferBytes};
      const absl::StatusOr<size_t> got = channel_.Receive({&room, 1});
      incoming_.begin = 0;
      incoming_.end = got.value_or(0);
      network_ended_ = !got.ok();
      if (network_ended_) {
        Warn(got.status());
        if (!channel_.has_peer()) return false;
      }
    }
    while (!incoming_.IsEmpty()) {
      const iovec rest = incoming_.Rest();
      const ssize_t count = send(local_.get(), rest.iov_base, rest.iov_len,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
      if (count < 0) {
        // Nobody hears it any more; what was written to the peer goes on, and
        // is lost if the peer's bytes are not read meanwhile.
        incoming_.begin = incoming_.end;
        return true;
      }
      incoming_.begin += count;
      progress = true;
    }
    return true;
  }

  const std::string address_;  // the peer's, for the log
  const Descriptor local_;
  TlsChannel channel_;
  Buffer outgoing_;
  Buffer incoming_;
  bool local_ended_ = false;
  bool has_said_end_ = false;   // to the peer
  bool network_ended_ = false;  // or is broken
  bool has_told_end_ = false;   // to the local user
};

// A thread that carries the bytes of some tunnels.
class TlsTunnels::Loop {
 public:
  explicit Loop(Clock& clock)
      : clock_(clock), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    CHECK(wake_.is_open());
    thread_ = std::thread([this] { Run(); });
  }
  // Sends what the tunnels' users have written, for a second at most.
  ~Loop() {
    {
      absl::MutexLock lock(&mu_);
      stopped_ = true;
    }
    Wake();
    thread_.join();
  }

  void Add(std::unique_ptr<Tunnel> tunnel) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      added_.push_back(std::move(tunnel));
    }
    Wake();
  }

 private:
  void Wake() {
    const uint64_t one = 1;
    CHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one));
  }

  void Run() {
    while (TakeAdded()) Move(/*timeout_ms=*/-1);
    const absl::Time end = clock_.Now() + kLinger;
    while (clock_.Now() < end &&
           std::any_of(tunnels_.begin(), tunnels_.end(),
                       [](const auto& each) { return each->HasToSend(); })) {
      Move(kLingerPollMs);
    }
  }

  // Waits until something can be moved, and moves it.
  void Move(int timeout_ms) {
    std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
    for (const auto& tunnel : tunnels_) {
      polled.push_back(tunnel->NetworkEvents());
      polled.push_back(tunnel->LocalEvents());
    }
    poll(polled.data(), polled.size(), timeout_ms);
    uint64_t wakes;
    (void)!read(wake_.get(), &wakes, sizeof(wakes));
    size_t next = 1;
    for (auto it = tunnels_.begin(); it != tunnels_.end(); next += 2) {
      const bool may_move =
          polled[next].revents != 0 || polled[next + 1].revents != 0;
      it = may_move && !(*it)->Advance() ? tunnels_.erase(it) : std::next(it);
    }
  }

  // Begins the new tunnels. Returns false at the end.
  bool TakeAdded() ABSL_LOCKS_EXCLUDED(mu_) {
    std::vector<std::unique_ptr<Tunnel>> added;
    {
      absl::MutexLock lock(&mu_);
      if (stopped_) return false;
      added.swap(added_);
    }
    for (std::unique_ptr<Tunnel>& tunnel : added) {
      if (tunnel->Advance()) tunnels_.push_back(std::move(tunnel));
    }
    return true;
  }

  Clock& clock_;
  const Descriptor wake_;
  std::list<std::unique_ptr<Tunnel>> tunnels_;  // the thread's
  absl::Mutex mu_;
  std::vector<std::unique_ptr<Tunnel>> added_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<TlsTunnels>> TlsTunnels::Start(
    const CertificateFiles& files, int threads, Clock& clock) {
  std::unique_ptr<TlsTunnels> tunnels(new TlsTunnels(files, clock));
  {
    absl::MutexLock lock(&tunnels->mu_);
    ASSIGN_OR_RETURN(tunnels->keys_, ReadKeys(files, clock.Now()));
  }
  for (int i = 0; i < threads; ++i) {
    tunnels->loops_.push_back(std::make_unique<Loop>(clock));
  }
  return tunnels;
}

TlsTunnels::TlsTunnels(CertificateFiles files, Clock& clock)
    : files_(std::move(files)), clock_(clock) {}

TlsTunnels::~TlsTunnels() = default;

absl::StatusOr<TlsTunnels::Keys> TlsTunnels::ReadKeys(
    const CertificateFiles& files, absl::Time now) {
  ASSIGN_OR_RETURN(const KeyMaterial material, files.Read());
  ASSIGN_OR_RETURN(const PeerIdentity identity, IdentityOf(material, now),
                   _ << "--tls_certificate=" << files.certificate);
  return TlsContext::Make(material, identity);
}

TlsTunnels::Keys TlsTunnels::NewestKeys() {
  // A file may take long to read.
  absl::StatusOr<Keys> read = ReadKeys(files_, clock_.Now());
  absl::MutexLock lock(&mu_);
  if (read.ok() && (*read)->identity() == keys_->identity()) {
    keys_ = *std::move(read);
  }
  return keys_;
}

absl::StatusOr<Descriptor> TlsTunnels::Open(Descriptor socket, PeerSide own,
                                            PeerRole peer) {
  int ends[2];
  if (fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0 ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                 ends) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a tunnel: ", std::strerror(errno)));
  }
  Descriptor local(ends[0]);
  Descriptor users(ends[1]);
  auto tunnel = std::make_unique<Tunnel>(std::move(socket), std::move(local),
                                         NewestKeys(), own, peer, clock_);
  loops_[next_++ % loops_.size()]->Add(std::move(tunnel));
  return users;
}

}  // namespace parasol

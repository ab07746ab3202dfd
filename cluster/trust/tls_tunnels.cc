#include "cluster/trust/tls_tunnels.h"

#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
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
#include "cluster/trust/openssl_handles.h"

namespace parasol {
namespace {

using SslContext = openssl::Handle<SSL_CTX, SSL_CTX_free>;
using Ssl = openssl::Handle<SSL, SSL_free>;

// Bytes of one direction that are on their way: many records of TLS, whose
// largest are of 16 KiB.
constexpr size_t kBufferBytes = 256 << 10;
// Time for which the end of a process waits until all has been sent.
constexpr absl::Duration kLinger = absl::Seconds(1);
constexpr int kLingerPollMs = 20;

// The look at a peer's certificates comes behind the handshake, which proves
// that the peer has the key.
int AcceptForNow(X509_STORE_CTX*, void*) { return 1; }

std::string TextOfCertificate(X509* certificate) {
  const openssl::Bio bio(BIO_new(BIO_s_mem()));
  CHECK_EQ(PEM_write_bio_X509(bio.get(), certificate), 1);
  char* text = nullptr;
  const auto bytes = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, bytes);
}

// Returns the peer's certificate and those that it has sent, in PEM.
std::string CertificatesOf(const SSL* ssl) {
  const openssl::Certificate own(SSL_get1_peer_certificate(ssl));
  if (own == nullptr) return "";
  std::string pem = TextOfCertificate(own.get());
  STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(ssl);
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    pem += TextOfCertificate(sk_X509_value(chain, i));
  }
  return pem;
}

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

SslContext MakeContext(const KeyMaterial& material, PeerSide own) {
  SslContext context(SSL_CTX_new(
      own == PeerSide::kClient ? TLS_client_method() : TLS_server_method()));
  CHECK(context != nullptr);
  SSL_CTX* const ctx = context.get();
  SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
  SSL_CTX_set_mode(
      ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // AES-128-GCM is the fastest with the instructions of today's processors.
  SSL_CTX_set_ciphersuites(ctx,
                           "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                           "TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  SSL_CTX_set_cert_verify_callback(ctx, AcceptForNow, nullptr);
  // A connection is made once.
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(ctx, 0);
  const openssl::Bio certificates(
      BIO_new_mem_buf(material.certificates.data(),
                      static_cast<int>(material.certificates.size())));
  for (bool is_own = true;; is_own = false) {
    X509* const next =
        PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr);
    if (next == nullptr) break;
    // The context keeps the first by a reference of its own, and takes others.
    if (is_own) {
      CHECK_EQ(SSL_CTX_use_certificate(ctx, next), 1);
      X509_free(next);
    } else {
      CHECK_EQ(SSL_CTX_add0_chain_cert(ctx, next), 1);
    }
  }
  const openssl::Bio key_text(
      BIO_new_mem_buf(material.private_key.data(),
                      static_cast<int>(material.private_key.size())));
  const openssl::Key key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  CHECK(key != nullptr && SSL_CTX_use_PrivateKey(ctx, key.get()) == 1);
  ERR_clear_error();
  return context;
}

}  // namespace

// One tunnel. Used by its loop's thread.
class TlsTunnels::Tunnel {
 public:
  Tunnel(Descriptor network, Descriptor local, const Keys& keys, PeerSide own,
         PeerRole peer, Clock& clock)
      : address_(AddressOfPeer(network)),
        network_(std::move(network)),
        local_(std::move(local)),
        job_(keys.identity.job),
        authorities_(keys.authorities),
        own_(own),
        peer_(peer),
        clock_(clock),
        context_(MakeContext(keys.material, own)),
        ssl_(SSL_new(context_.get())) {
    CHECK(ssl_ != nullptr && SSL_set_fd(ssl_.get(), network_.get()) == 1);
    own == PeerSide::kClient ? SSL_set_connect_state(ssl_.get())
                             : SSL_set_accept_state(ssl_.get());
  }

  // Returns what to wait for: on the network, and on the local socket.
  pollfd NetworkEvents() const {
    // What has ended always has an event.
    const bool reads =
        !network_ended_ && (!has_peer_ || incoming_.IsEmpty() || wants_read_);
    return {
        reads || wants_write_ ? network_.get() : -1,
        static_cast<short>((reads ? POLLIN : 0) | (wants_write_ ? POLLOUT : 0)),
        0};
  }
  pollfd LocalEvents() const {
    const bool reads = has_peer_ && outgoing_.IsEmpty() && !local_ended_;
    return {reads || !incoming_.IsEmpty() ? local_.get() : -1,
            static_cast<short>((reads ? POLLIN : 0) |
                               (incoming_.IsEmpty() ? 0 : POLLOUT)),
            0};
  }

  // Returns true if the peer has not been sent all that its user wrote.
  bool HasToSend() const { return has_peer_ && !has_said_end_; }

  // Does what is possible. Returns false when the tunnel has ended.
  bool Advance() {
    wants_read_ = wants_write_ = false;
    if (!has_peer_) {
      const int done = SSL_do_handshake(ssl_.get());
      if (done != 1) return IsWaiting(done, "the handshake failed");
      if (!AcceptPeer()) return false;
    }
    for (bool progress = true; progress;) {
      progress = false;
      if (!MoveOut(progress) || !MoveIn(progress)) return false;
      if (local_ended_ && outgoing_.IsEmpty() && !has_said_end_) {
        const int said = SSL_shutdown(ssl_.get());
        if (said < 0) return IsWaiting(said, "the end can't be sent");
        has_said_end_ = true;
        shutdown(network_.get(), SHUT_WR);
      }
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
  };

  bool AcceptPeer() {
    const absl::StatusOr<PeerIdentity> peer = authorities_->Verify(
        CertificatesOf(ssl_.get()),
        own_ == PeerSide::kClient ? PeerSide::kServer : PeerSide::kClient,
        clock_.Now());
    has_peer_ = peer.ok() && peer->job == job_ && peer->role == peer_;
    if (!has_peer_) {
      LOG_EVERY(WARNING, absl::Seconds(10))
          << "refused a connection with " << address_ << ": the certificate "
          << (peer.ok() ? absl::StrCat("is ", peer->ToString(), ", not a ",
                                       PeerRoleName(peer_), " of ", job_)
                        : std::string(peer.status().message()));
    }
    return has_peer_;
  }

  // Returns true if the operation waits for the network; otherwise the tunnel
  // is broken.
  bool IsWaiting(int result, const char* what) {
    const int error = SSL_get_error(ssl_.get(), result);
    const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    wants_read_ |= error == SSL_ERROR_WANT_READ;
    wants_write_ |= error == SSL_ERROR_WANT_WRITE;
    const bool is_waiting =
        error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    if (!is_waiting && !has_peer_) {
      LOG_EVERY(WARNING, absl::Seconds(10))
          << "the connection with " << address_ << " has ended: " << what
          << (reason == nullptr ? ": the peer has closed it"
                                : absl::StrCat(": ", reason))
          << "; does the peer have certificates, too?";
    }
    return is_waiting;
  }

  // From the local socket to the network.
  bool MoveOut(bool& progress) {
    if (outgoing_.IsEmpty() && !local_ended_) {
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
    while (!outgoing_.IsEmpty()) {
      size_t sent = 0;
      const int done =
          SSL_write_ex(ssl_.get(), outgoing_.bytes.data() + outgoing_.begin,
                       outgoing_.end - outgoing_.begin, &sent);
      if (done != 1) return IsWaiting(done, "nothing can be sent");
      outgoing_.begin += sent;
      progress = true;
    }
    return true;
  }

  // From the network to the local socket.
  bool MoveIn(bool& progress) {
    if (incoming_.IsEmpty() && !network_ended_) {
      incoming_.begin = incoming_.end = 0;
      size_t got = 1;
      while (incoming_.end < kBufferBytes && got > 0) {
        got = 0;
        const int done =
            SSL_read_ex(ssl_.get(), incoming_.bytes.data() + incoming_.end,
                        kBufferBytes - incoming_.end, &got);
        incoming_.end += got;
        if (done == 1) continue;
        const int error = SSL_get_error(ssl_.get(), done);
        if (error == SSL_ERROR_ZERO_RETURN) {
          network_ended_ = true;
        } else if (!IsWaiting(done, "nothing can be received")) {
          // What has come is handed on first.
          if (incoming_.IsEmpty()) return false;
          network_ended_ = true;
          got = 0;
        }
      }
    }
    while (!incoming_.IsEmpty()) {
      const ssize_t count =
          send(local_.get(), incoming_.bytes.data() + incoming_.begin,
               incoming_.end - incoming_.begin, MSG_DONTWAIT | MSG_NOSIGNAL);
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
  const Descriptor network_;
  const Descriptor local_;
  const std::string job_;
  const std::shared_ptr<const Authorities> authorities_;
  const PeerSide own_;
  const PeerRole peer_;
  Clock& clock_;
  const SslContext context_;
  const Ssl ssl_;
  Buffer outgoing_;
  Buffer incoming_;
  bool has_peer_ = false;  // the handshake is over, and the peer is trusted
  bool wants_read_ = false;
  bool wants_write_ = false;
  bool local_ended_ = false;
  bool has_said_end_ = false;  // to the peer
  bool network_ended_ = false;
  bool has_told_end_ = false;  // to the local user
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
    // OpenSSL writes to sockets whose peer may be gone; the signal of that
    // comes to the thread that writes.
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
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
  Keys keys;
  ASSIGN_OR_RETURN(keys.material, files.Read());
  ASSIGN_OR_RETURN(keys.identity, IdentityOf(keys.material, now),
                   _ << "--tls_certificate=" << files.certificate);
  ASSIGN_OR_RETURN(keys.authorities,
                   Authorities::Parse(keys.material.authorities));
  return keys;
}

TlsTunnels::Keys TlsTunnels::NewestKeys() {
  // A file may take long to read.
  absl::StatusOr<Keys> read = ReadKeys(files_, clock_.Now());
  absl::MutexLock lock(&mu_);
  if (read.ok() && read->identity == keys_.identity) keys_ = *std::move(read);
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

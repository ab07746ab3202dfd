#include "cluster/trust/tls_channel.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/trust/openssl_handles.h"

namespace parasol {
namespace {

// Bytes of a full record of TLS.
constexpr size_t kRecordBytes = 16 << 10;
// Records are sent when so many bytes of them are there: few calls, and the
// peer decrypts the first ones while the next are encrypted.
constexpr size_t kBatchBytes = 64 << 10;

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

long AnswerControl(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int BeginBio(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

}  // namespace

const BIO_METHOD* TlsChannel::SocketMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(
        BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "a channel's socket");
    CHECK(made != nullptr);
    BIO_meth_set_create(made, BeginBio);
    BIO_meth_set_ctrl(made, AnswerControl);
    BIO_meth_set_read(made, ReadSocket);
    BIO_meth_set_write(made, TakeRecords);
    return made;
  }();
  return method;
}

TlsChannel::TlsChannel(std::shared_ptr<const TlsContext> context,
                       Descriptor socket, PeerSide own, ExpectedPeer peer,
                       Clock& clock, int64_t records_per_key)
    : context_(std::move(context)),
      socket_(std::move(socket)),
      own_(own),
      peer_(peer),
      clock_(clock),
      records_per_key_(records_per_key),
      ssl_(context_->NewConnection(own)) {
  BIO* const bio = BIO_new(SocketMethod());
  CHECK(bio != nullptr);
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_, bio, bio);
}

TlsChannel::~TlsChannel() { SSL_free(ssl_); }

int TlsChannel::ReadSocket(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  auto* const channel = static_cast<TlsChannel*>(BIO_get_data(bio));
  ssize_t count;
  do {
    count = recv(channel->socket_.get(), bytes, size, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count == 0) channel->peer_has_ended_ = true;
  if (count < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
  return static_cast<int>(count);
}

int TlsChannel::TakeRecords(BIO* bio, const char* bytes, int size) {
  auto* const channel = static_cast<TlsChannel*>(BIO_get_data(bio));
  channel->records_.insert(channel->records_.end(), bytes, bytes + size);
  return size;
}

absl::StatusOr<size_t> TlsChannel::Outcome(int result) {
  const int system_error = errno;
  const int error = SSL_get_error(ssl_, result);
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ) return 0;
  // It may still be sent to.
  if (error == SSL_ERROR_ZERO_RETURN)
    return absl::UnavailableError("the peer has ended it");
  std::string why = "the peer has closed it";
  if (!peer_has_ended_) {
    why = reason == nullptr ? std::strerror(system_error) : reason;
  }
  if (!has_peer_) {
    absl::StrAppend(&why,
                    ", in the handshake; does the peer have "
                    "certificates, too?");
  }
  broken_.Update(absl::UnavailableError(why));
  return broken_;
}

absl::StatusOr<bool> TlsChannel::Shake() {
  RETURN_IF_ERROR(broken_);
  if (has_peer_) return true;
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_);
  const absl::StatusOr<size_t> outcome = done == 1 ? 0 : Outcome(done);
  // Also why a handshake has failed is for the peer.
  const absl::Status flushed = Flush();
  RETURN_IF_ERROR(outcome.status());
  broken_.Update(flushed);
  RETURN_IF_ERROR(broken_);
  if (done != 1) return false;
  broken_.Update(CheckPeer());
  RETURN_IF_ERROR(broken_);
  has_peer_ = true;
  return true;
}

absl::Status TlsChannel::CheckPeer() {
  return context_->CheckPeer(
      CertificatesOf(ssl_),
      own_ == PeerSide::kClient ? PeerSide::kServer : PeerSide::kClient, peer_,
      clock_.Now());
}

absl::StatusOr<size_t> TlsChannel::Receive(absl::Span<const iovec> pieces) {
  size_t received = 0;
  for (const iovec& piece : pieces) {
    for (size_t at = 0; at < piece.iov_len;) {
      const absl::StatusOr<size_t> some = ReceiveSome(
          {static_cast<char*>(piece.iov_base) + at, piece.iov_len - at});
      // What has come is told first; the error is found again.
      if (!some.ok() && received > 0) return received;
      RETURN_IF_ERROR(some.status());
      if (*some == 0) return received;
      at += *some;
      received += *some;
    }
  }
  return received;
}

// The lock is released between records: the other direction is not held up.
absl::StatusOr<size_t> TlsChannel::ReceiveSome(const iovec& piece) {
  absl::MutexLock lock(&mu_);
  ASSIGN_OR_RETURN(const bool is_ready, Shake());
  if (!is_ready) return 0;
  ERR_clear_error();
  size_t count = 0;
  const int done = SSL_read_ex(ssl_, piece.iov_base, piece.iov_len, &count);
  if (done == 1) return count;
  return Outcome(done);
}

absl::StatusOr<size_t> TlsChannel::Send(absl::Span<const iovec> pieces) {
  absl::MutexLock lock(&mu_);
  ASSIGN_OR_RETURN(const bool is_ready, Shake());
  RETURN_IF_ERROR(unsendable_);
  if (!is_ready) return 0;
  RETURN_IF_ERROR(Flush());
  size_t taken = 0;
  size_t offset = 0;  // in the first piece
  while (!has_unsent_ && records_.size() < kBatchBytes) {
    while (!pieces.empty() && offset >= pieces.front().iov_len) {
      offset -= pieces.front().iov_len;
      pieces.remove_prefix(1);
    }
    if (pieces.empty()) break;
    ASSIGN_OR_RETURN(const size_t some, TakeRecord(pieces, offset));
    if (some == 0) break;
    taken += some;
    offset += some;
  }
  RETURN_IF_ERROR(Flush());
  return taken;
}

absl::StatusOr<size_t> TlsChannel::TakeRecord(absl::Span<const iovec> pieces,
                                              size_t offset) {
  if (records_of_key_++ == records_per_key_) {
    records_of_key_ = 1;
    if (SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
      return Outcome(0);
    }
  }
  const char* bytes = static_cast<char*>(pieces.front().iov_base) + offset;
  size_t size = std::min(pieces.front().iov_len - offset, kRecordBytes);
  if (size < kRecordBytes && pieces.size() > 1) {
    gathered_.clear();
    for (const iovec& piece : pieces) {
      const size_t some =
          std::min(piece.iov_len - offset, kRecordBytes - gathered_.size());
      const char* const from = static_cast<char*>(piece.iov_base) + offset;
      gathered_.insert(gathered_.end(), from, from + some);
      if (gathered_.size() == kRecordBytes) break;
      offset = 0;
    }
    bytes = gathered_.data();
    size = gathered_.size();
  }
  ERR_clear_error();
  size_t count = 0;
  const int done = SSL_write_ex(ssl_, bytes, size, &count);
  if (done == 1) return count;
  return Outcome(done);
}

absl::Status TlsChannel::Flush() {
  while (sent_ < records_.size()) {
    const ssize_t count =
        send(socket_.get(), records_.data() + sent_, records_.size() - sent_,
             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      has_unsent_ = true;
      return absl::OkStatus();
    }
    if (count < 0) {
      unsendable_ = absl::UnavailableError(std::strerror(errno));
      break;
    }
    sent_ += count;
  }
  records_.clear();
  sent_ = 0;
  has_unsent_ = false;
  return unsendable_;
}

absl::Status TlsChannel::SayEnd() {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(broken_);
  RETURN_IF_ERROR(unsendable_);
  if ((SSL_get_shutdown(ssl_) & SSL_SENT_SHUTDOWN) != 0) return Flush();
  ERR_clear_error();
  const int said = SSL_shutdown(ssl_);
  if (said < 0) {
    RETURN_IF_ERROR(Outcome(said).status());
  }
  return Flush();
}

}  // namespace parasol

#ifndef PARASOL_CLUSTER_TRUST_TLS_CHANNEL_H_
#define PARASOL_CLUSTER_TRUST_TLS_CHANNEL_H_

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "cluster/trust/key_material.h"
#include "cluster/trust/tls_context.h"

typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;

namespace parasol {

// One end of a connection in TLS 1.3, for users who wait for its socket
// themselves: no call blocks. The handshake goes on in Receive() and in Send(),
// and nothing is taken from, or given to, a peer that is not the one expected.
// Whoever stands between the ends can only cut the bytes off: users know by
// themselves what is whole.
//
// Thread-safe: one thread may receive while another one sends.
class TlsChannel {
 public:
  // Records, of 16 KiB at most, that are sent with one key. AES-GCM bears
  // 2^24.5 (RFC 8446, 5.5).
  static constexpr int64_t kRecordsPerKey = int64_t{1} << 22;

  // Begins on a connected socket. `clock`, which says whether certificates are
  // valid, must outlive the channel. `records_per_key` is for tests.
  TlsChannel(std::shared_ptr<const TlsContext> context, Descriptor socket,
             PeerSide own, ExpectedPeer peer, Clock& clock,
             int64_t records_per_key = kRecordsPerKey);
  ~TlsChannel();
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  const Descriptor& socket() const { return socket_; }

  // Returns true if the handshake is over and the peer the one expected.
  bool has_peer() const { return has_peer_; }
  // Returns true if bytes that Send() has taken wait for room in the socket.
  bool has_unsent() const { return has_unsent_; }

  // Receives bytes to the pieces, in order. Returns how many; 0: none are there
  // now, wait for the socket.
  //   Unauthenticated  the peer is not the one expected; "the certificate …".
  //   Unavailable      the peer has ended the connection, or it is broken.
  absl::StatusOr<size_t> Receive(absl::Span<const iovec> pieces)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Sends what waits, then takes bytes of the pieces and sends as many as there
  // is room for. Returns how many were taken, which may change then; 0: wait
  // for the socket, unless there were none. Errors are Receive()'s.
  absl::StatusOr<size_t> Send(absl::Span<const iovec> pieces)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Tells the peer that nothing more will be sent, behind what was; Send()
  // sends this, too. Requires has_peer(). Errors are Receive()'s.
  absl::Status SayEnd() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static const BIO_METHOD* SocketMethod();
  // The functions of that method: OpenSSL calls them with the lock held.
  static int ReadSocket(BIO* bio, char* bytes,
                        int size) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static int TakeRecords(BIO* bio, const char* bytes,
                         int size) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // Goes on with the handshake. Returns true when it is over.
  absl::StatusOr<bool> Shake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckPeer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns 0 if OpenSSL waits for the socket, or why it has failed.
  absl::StatusOr<size_t> Outcome(int result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<size_t> ReceiveSome(const iovec& piece)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Makes the next record of the pieces from byte `offset` of the first one on.
  // Returns how many bytes it has.
  absl::StatusOr<size_t> TakeRecord(absl::Span<const iovec> pieces,
                                    size_t offset)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends records, as far as the socket takes them.
  absl::Status Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<const TlsContext> context_;
  const Descriptor socket_;
  const PeerSide own_;
  const ExpectedPeer peer_;
  Clock& clock_;
  const int64_t records_per_key_;
  std::atomic<bool> has_peer_ = false;
  std::atomic<bool> has_unsent_ = false;

  absl::Mutex mu_;
  SSL* const ssl_ ABSL_PT_GUARDED_BY(mu_);
  bool peer_has_ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status broken_ ABSL_GUARDED_BY(mu_);
  // The reason why nothing can be sent any more; what has come can be read.
  absl::Status unsendable_ ABSL_GUARDED_BY(mu_);
  // Encrypted records; those from sent_ on wait.
  std::vector<char> records_ ABSL_GUARDED_BY(mu_);
  size_t sent_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t records_of_key_ ABSL_GUARDED_BY(mu_) = 0;
  // Bytes of small pieces, which share a record.
  std::vector<char> gathered_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_TLS_CHANNEL_H_

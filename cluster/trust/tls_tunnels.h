#ifndef PARASOL_CLUSTER_TRUST_TLS_TUNNELS_H_
#define PARASOL_CLUSTER_TRUST_TLS_TUNNELS_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "cluster/trust/certificate_files.h"
#include "cluster/trust/key_material.h"
#include "cluster/trust/peer_identity.h"
#include "cluster/trust/tls_context.h"

namespace parasol {

// TLS for connections whose users read and write sockets themselves. A tunnel
// takes a connected socket and gives another one, of this machine, in its
// place: what is written to that travels encrypted, and what can be read from
// it is the peer's. Both ends show a certificate of the same job. A tunnel
// whose peer is nobody whom this process trusts closes both sockets, and says
// why in the log.
//
// Threads of this object carry the bytes; the tunnels end with it.
class TlsTunnels {
 public:
  // Reads the files, and again for each tunnel: new certificates are used when
  // they are there. `clock` must outlive the tunnels.
  //   InvalidArgument  a file can't be read, or peers would refuse what it has.
  static absl::StatusOr<std::unique_ptr<TlsTunnels>> Start(
      const CertificateFiles& files, int threads, Clock& clock);
  ~TlsTunnels();
  TlsTunnels(const TlsTunnels&) = delete;
  TlsTunnels& operator=(const TlsTunnels&) = delete;

  // Begins a tunnel to a peer of one role. `own` is this process's side: who
  // has connected is the client. The socket returned does not block.
  //   ResourceExhausted  no descriptor is left.
  absl::StatusOr<Descriptor> Open(Descriptor socket, PeerSide own,
                                  PeerRole peer) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Tunnel;
  class Loop;
  using Keys = std::shared_ptr<const TlsContext>;

  TlsTunnels(CertificateFiles files, Clock& clock);
  static absl::StatusOr<Keys> ReadKeys(const CertificateFiles& files,
                                       absl::Time now);
  // Returns the newest keys of use.
  Keys NewestKeys() ABSL_LOCKS_EXCLUDED(mu_);

  const CertificateFiles files_;
  Clock& clock_;
  absl::Mutex mu_;
  Keys keys_ ABSL_GUARDED_BY(mu_);
  std::atomic<size_t> next_ = 0;
  std::vector<std::unique_ptr<Loop>> loops_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_TLS_TUNNELS_H_

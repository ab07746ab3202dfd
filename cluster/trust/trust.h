#ifndef PARASOL_CLUSTER_TRUST_TRUST_H_
#define PARASOL_CLUSTER_TRUST_TRUST_H_

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "cluster/trust/certificate_files.h"
#include "cluster/trust/job_token.h"
#include "cluster/trust/key_material.h"
#include "cluster/trust/memory_file.h"
#include "cluster/trust/peer_identity.h"
#include "cluster/trust/tls_channel.h"
#include "cluster/trust/tls_context.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc
namespace grpc::experimental {
class CertificateProviderInterface;
}  // namespace grpc::experimental

namespace parasol {

// A task as a client means to call it.
struct ExpectedTask {
  PeerRole role = PeerRole::kUnknown;
  int index = 0;
};

// The keys of this process in its job: by which it proves who it is, and knows
// who others are. Both ends of each connection prove an identity of the same
// job (mutual TLS); the client also requires that it is the task it has called.
// Whoever has no such object has no keys, and proves and asks for nothing.
// Thread-safe. Its credentials may outlive it.
class Trust {
 public:
  // Time after which certificates' files are looked at again.
  static constexpr absl::Duration kRereadInterval = absl::Seconds(5);

  // Returns the keys of one task by the job's token.
  static std::shared_ptr<Trust> OfToken(const JobToken& token, PeerRole role,
                                        int index, Clock& clock);

  // Returns the keys in files, which are read again every kRereadInterval.
  //   InvalidArgument  a file can't be read, or peers would refuse what it has.
  static absl::StatusOr<std::shared_ptr<Trust>> OfFiles(
      const CertificateFiles& files, Clock& clock);

  ~Trust();
  Trust(const Trust&) = delete;
  Trust& operator=(const Trust&) = delete;

  // Returns who this process is.
  const PeerIdentity& identity() const { return identity_; }

  // Returns true if nothing may travel in clear text: the job has certificates.
  bool encrypts_all() const { return files_.has_value(); }

  // Returns credentials of a server that refuses whoever is not of the job.
  std::shared_ptr<grpc::ServerCredentials> ServerCredentials() const;

  // Returns credentials of a channel that goes to one of the tasks.
  std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(
      std::vector<ExpectedTask> tasks) const;

  // Begins TLS on a connected socket, beside gRPC's connections, by the keys of
  // now. Requires encrypts_all(), and that this object's clock outlives the
  // channel.
  std::unique_ptr<TlsChannel> BeginTls(Descriptor socket, PeerSide own,
                                       ExpectedPeer peer) const
      ABSL_LOCKS_EXCLUDED(context_mu_);

  // Reads the files again, and takes what they have if peers would take it and
  // the identity is the same; new connections use it within a second. A line in
  // the log says why it does not.
  void Reread() ABSL_LOCKS_EXCLUDED(reread_mu_);

  // The look at a peer's certificate, which credentials share.
  class PeerCheck;

 private:
  Trust(PeerIdentity identity, Clock& clock);
  // Makes new connections use the material.
  absl::Status Publish(const KeyMaterial& material)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reread_mu_);
  absl::Status TakeFiles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(reread_mu_);
  void Watch();

  const PeerIdentity identity_;
  Clock& clock_;
  std::optional<CertificateFiles> files_;
  std::shared_ptr<PeerCheck> check_;

  absl::Mutex reread_mu_;
  KeyMaterial material_ ABSL_GUARDED_BY(reread_mu_);
  // The certificates and the key, which gRPC reads there.
  std::shared_ptr<MemoryFile> published_ ABSL_GUARDED_BY(reread_mu_);
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;

  mutable absl::Mutex context_mu_;
  // Null: the keys are a token's.
  std::shared_ptr<const TlsContext> context_ ABSL_GUARDED_BY(context_mu_);

  absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread watch_;  // rereads the files
};

// The process that a channel is to reach, and the keys by which it knows it.
struct Callee {
  // Null: there are no keys, and whoever answers is believed.
  std::shared_ptr<const Trust> trust;
  std::vector<ExpectedTask> tasks;

  // Returns a job's chief: worker 0 has its certificate where it runs the
  // chief beside itself.
  static Callee Chief(std::shared_ptr<const Trust> trust) {
    return {std::move(trust), {{PeerRole::kChief, 0}, {PeerRole::kWorker, 0}}};
  }
  static Callee Ps(std::shared_ptr<const Trust> trust, int index) {
    return {std::move(trust), {{PeerRole::kPs, index}}};
  }
  // Returns worker 0, which keeps the variables that workers have.
  static Callee StateKeeper(std::shared_ptr<const Trust> trust) {
    return {std::move(trust), {{PeerRole::kWorker, 0}}};
  }
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_TRUST_H_

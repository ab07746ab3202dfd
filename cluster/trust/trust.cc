#include "cluster/trust/trust.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogPeriod = absl::Seconds(10);
constexpr unsigned int kPublishedSeconds = 1;

std::string TaskNames(const std::vector<ExpectedTask>& tasks) {
  return absl::StrJoin(
      tasks, " or ", [](std::string* out, const ExpectedTask& task) {
        absl::StrAppend(out, PeerRoleName(task.role), "/", task.index);
      });
}

bool IsOneOf(const PeerIdentity& peer, const std::vector<ExpectedTask>& tasks) {
  for (const ExpectedTask& task : tasks) {
    if (peer.role == task.role && peer.index == task.index) return true;
  }
  return false;
}

}  // namespace

class Trust::PeerCheck {
 public:
  PeerCheck(std::string job, Clock& clock)
      : job_(std::move(job)), clock_(clock) {}

  void Use(std::shared_ptr<const Authorities> authorities)
      ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    authorities_ = std::move(authorities);
  }

  // Returns a peer of the job, the owner of the certificates.
  //   Unauthenticated  "the certificate …".
  absl::StatusOr<PeerIdentity> Look(absl::string_view certificates,
                                    PeerSide side) const
      ABSL_LOCKS_EXCLUDED(mu_) {
    std::shared_ptr<const Authorities> authorities;
    {
      absl::MutexLock lock(&mu_);
      authorities = authorities_;
    }
    ASSIGN_OR_RETURN(PeerIdentity peer,
                     authorities->Verify(certificates, side, clock_.Now()));
    if (peer.job == job_) return peer;
    return absl::UnauthenticatedError(
        absl::StrCat("is ", peer.ToString(), ", and this job is ", job_));
  }

 private:
  const std::string job_;
  Clock& clock_;
  mutable absl::Mutex mu_;
  std::shared_ptr<const Authorities> authorities_ ABSL_GUARDED_BY(mu_);
};

namespace {

// The look at the certificate of whoever connects to a server, or answers a
// client that has called one of `tasks`.
class Verifier : public grpc::experimental::ExternalCertificateVerifier {
 public:
  Verifier(std::shared_ptr<const Trust::PeerCheck> check,
           std::vector<ExpectedTask> tasks)
      : check_(std::move(check)), tasks_(std::move(tasks)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>,
              grpc::Status* sync_status) override {
    const absl::Status status = Look(*request);
    if (!status.ok()) {
      if (tasks_.empty()) {
        LOG_EVERY(WARNING, kLogPeriod)
            << "refused a connection: the certificate " << status.message();
      }
      *sync_status =
          grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                       absl::StrCat("the certificate ", status.message()));
    }
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {
  }

 private:
  absl::Status Look(const grpc::experimental::TlsCustomVerificationCheckRequest&
                        request) const {
    // A server's view of the chain begins behind the peer's own certificate.
    const grpc::string_ref own = request.peer_cert();
    const grpc::string_ref chain = request.peer_cert_full_chain();
    ASSIGN_OR_RETURN(
        const PeerIdentity peer,
        check_->Look(
            absl::StrCat(absl::string_view(own.data(), own.size()),
                         absl::string_view(chain.data(), chain.size())),
            tasks_.empty() ? PeerSide::kClient : PeerSide::kServer));
    if (tasks_.empty() || IsOneOf(peer, tasks_)) return absl::OkStatus();
    return absl::UnauthenticatedError(absl::StrCat(
        "is ", peer.ToString(), ", and ", TaskNames(tasks_), " was called"));
  }

  const std::shared_ptr<const Trust::PeerCheck> check_;
  const std::vector<ExpectedTask> tasks_;  // none: any task of the job
};

// Sets what both sides need. The verifier looks at certificates in gRPC's
// place, which would not say what is wrong with one.
void SetOptions(
    std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider,
    std::shared_ptr<const Trust::PeerCheck> check,
    std::vector<ExpectedTask> tasks,
    grpc::experimental::TlsCredentialsOptions& options) {
  options.set_certificate_provider(std::move(provider));
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<Verifier>(
          std::move(check), std::move(tasks)));
  // Names of hosts are not identities.
  options.set_check_call_host(false);
}

// A provider of what a file in memory has.
class PublishedKeys : public grpc::experimental::CertificateProviderInterface {
 public:
  explicit PublishedKeys(std::shared_ptr<MemoryFile> file)
      : file_(std::move(file)),
        provider_(file_->path(), file_->path(), kPublishedSeconds) {}

  grpc_tls_certificate_provider* c_provider() override {
    return provider_.c_provider();
  }

 private:
  const std::shared_ptr<MemoryFile> file_;
  grpc::experimental::FileWatcherCertificateProvider provider_;
};

}  // namespace

Trust::Trust(PeerIdentity identity, Clock& clock)
    : identity_(std::move(identity)),
      clock_(clock),
      check_(std::make_shared<PeerCheck>(identity_.job, clock)) {}

std::shared_ptr<Trust> Trust::OfToken(const JobToken& token, PeerRole role,
                                      int index, Clock& clock) {
  const KeyMaterial material = IssueByToken(token, role, index);
  std::shared_ptr<Trust> trust(
      new Trust({.job = token.JobName(), .role = role, .index = index}, clock));
  trust->check_->Use(Authorities::Parse(material.authorities).value());
  using grpc::experimental::IdentityKeyCertPair;
  trust->provider_ =
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
          std::vector<IdentityKeyCertPair>{
              {.private_key = material.private_key,
               .certificate_chain = material.certificates}});
  return trust;
}

absl::StatusOr<std::shared_ptr<Trust>> Trust::OfFiles(
    const CertificateFiles& files, Clock& clock) {
  ASSIGN_OR_RETURN(const KeyMaterial material, files.Read());
  ASSIGN_OR_RETURN(PeerIdentity identity, IdentityOf(material, clock.Now()),
                   _ << "--tls_certificate=" << files.certificate);
  std::shared_ptr<Trust> trust(new Trust(std::move(identity), clock));
  trust->files_ = files;
  trust->published_ = std::make_shared<MemoryFile>();
  {
    absl::MutexLock lock(&trust->reread_mu_);
    RETURN_IF_ERROR(trust->Publish(material));
  }
  trust->provider_ = std::make_shared<PublishedKeys>(trust->published_);
  trust->watch_ = std::thread([trust = trust.get()] { trust->Watch(); });
  return trust;
}

Trust::~Trust() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  if (watch_.joinable()) watch_.join();
}

std::shared_ptr<grpc::ServerCredentials> Trust::ServerCredentials() const {
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  SetOptions(provider_, check_, {}, options);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> Trust::ChannelCredentials(
    std::vector<ExpectedTask> tasks) const {
  CHECK(!tasks.empty());
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  SetOptions(provider_, check_, std::move(tasks), options);
  return grpc::experimental::TlsCredentials(options);
}

std::unique_ptr<TlsChannel> Trust::BeginTls(Descriptor socket, PeerSide own,
                                            ExpectedPeer peer) const {
  CHECK(encrypts_all());
  std::shared_ptr<const TlsContext> context;
  {
    absl::MutexLock lock(&context_mu_);
    context = context_;
  }
  return std::make_unique<TlsChannel>(std::move(context), std::move(socket),
                                      own, peer, clock_);
}

absl::Status Trust::Publish(const KeyMaterial& material) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Authorities> authorities,
                   Authorities::Parse(material.authorities));
  ASSIGN_OR_RETURN(std::shared_ptr<const TlsContext> context,
                   TlsContext::Make(material, identity_),
                   _ << "--tls_certificate=" << files_->certificate);
  RETURN_IF_ERROR(published_->Replace(
      absl::StrCat(material.certificates, "\n", material.private_key)));
  check_->Use(std::move(authorities));
  material_ = material;
  absl::MutexLock lock(&context_mu_);
  context_ = std::move(context);
  return absl::OkStatus();
}

absl::Status Trust::TakeFiles() {
  ASSIGN_OR_RETURN(const KeyMaterial material, files_->Read());
  ASSIGN_OR_RETURN(const PeerIdentity identity,
                   IdentityOf(material, clock_.Now()),
                   _ << "--tls_certificate=" << files_->certificate);
  if (material == material_) return absl::OkStatus();
  if (identity != identity_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tls_certificate=", files_->certificate, ": is ", identity.ToString(),
        ", and this process is ", identity_.ToString()));
  }
  RETURN_IF_ERROR(Publish(material));
  LOG(INFO) << "takes the new certificate in " << files_->certificate;
  return absl::OkStatus();
}

void Trust::Reread() {
  absl::MutexLock lock(&reread_mu_);
  if (!files_.has_value()) return;
  if (const absl::Status status = TakeFiles(); !status.ok()) {
    LOG_EVERY(WARNING, kLogPeriod)
        << status.message() << "; the former certificate stays in use";
  }
}

void Trust::Watch() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (clock_.AwaitWithTimeout(mu_, absl::Condition(&stopped_),
                                  kRereadInterval)) {
        return;
      }
    }
    Reread();
  }
}

}  // namespace parasol

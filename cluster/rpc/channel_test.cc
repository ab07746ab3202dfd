#include "cluster/rpc/channel.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/rpc/peer.h"
#include "cluster/rpc/server.h"
#include "cluster/trust/certificate_issuer.h"
#include "cluster/trust/testing/certificate_directory.h"
#include "cluster/trust/trust.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "grpc/support/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "gtest/gtest.h"
#include "proto/parameter.grpc.pb.h"

namespace parasol {
namespace {

using testing::Eq;
using testing::HasSubstr;

class CallerNotingService : public wire::ParameterService::Service {
 public:
  grpc::Status Snapshot(grpc::ServerContext* call, const wire::SnapshotRequest*,
                        wire::SnapshotResponse*) override {
    if (calls++ == 0) caller = PeerOf(*call);
    return grpc::Status::OK;
  }

  std::optional<PeerIdentity> caller;  // of the first call
  std::atomic<int> calls = 0;
};

std::shared_ptr<Trust> ByToken(const std::string& token, PeerRole role,
                               int index) {
  return Trust::OfToken(
      JobToken::Parse(absl::StrCat("a token for tests: ", token)).value(), role,
      index, Clock::Real());
}

std::shared_ptr<Trust> ByFiles(const CertificateDirectory& directory,
                               absl::string_view task) {
  directory.Issue(task);
  return Trust::OfFiles(directory.files(), Clock::Real()).value();
}
std::shared_ptr<Trust> ByFiles(absl::string_view directory,
                               absl::string_view task) {
  return ByFiles(CertificateDirectory(directory, "authority"), task);
}

// Keeps the certificate of whoever answers, and believes everybody.
class Believer : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit Believer(std::string* seen) : seen_(*seen) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status*) override {
    seen_.assign(request->peer_cert().data(), request->peer_cert().size());
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {
  }

 private:
  std::string& seen_;
};

// Returns credentials of a client that believes everybody, and shows a
// certificate, or none.
std::shared_ptr<grpc::ChannelCredentials> Credulous(const KeyMaterial& own,
                                                    std::string* seen) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  if (!own.certificates.empty()) {
    options.set_certificate_provider(
        std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
            std::vector<grpc::experimental::IdentityKeyCertPair>{
                {.private_key = own.private_key,
                 .certificate_chain = own.certificates}}));
    options.watch_identity_key_cert_pairs();
  }
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<Believer>(seen));
  return grpc::experimental::TlsCredentials(options);
}

// A ps with a server, and calls to it.
class SecureChannelTest : public testing::Test {
 protected:
  void StartPs(std::shared_ptr<const Trust> trust) {
    server_ =
        RpcServer::Start("127.0.0.1:0", {&service_}, std::move(trust)).value();
  }

  grpc::Status Call(Callee callee) {
    return CallOn(MakeControlChannel(address(), callee));
  }

  // Calls as somebody who believes everybody. Returns the server's certificate
  // in `seen`.
  grpc::Status CallCredulously(const KeyMaterial& own, std::string* seen) {
    return CallOn(grpc::CreateChannel(address(), Credulous(own, seen)));
  }

  static grpc::Status CallOn(const std::shared_ptr<grpc::Channel>& channel) {
    const auto stub = wire::ParameterService::NewStub(channel);
    grpc::ClientContext context;
    context.set_deadline(gpr_time_from_seconds(20, GPR_TIMESPAN));
    wire::SnapshotResponse response;
    return stub->Snapshot(&context, {}, &response);
  }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_->port());
  }

  CallerNotingService service_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(SecureChannelTest, TasksOfOneTokenKnowEachOther) {
  const auto ps = ByToken("a", PeerRole::kPs, 1);
  StartPs(ps);
  const grpc::Status status =
      Call(Callee::Ps(ByToken("a", PeerRole::kWorker, 7), 1));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(service_.caller, Eq(PeerIdentity{.job = ps->identity().job,
                                               .role = PeerRole::kWorker,
                                               .index = 7}));
}

TEST_F(SecureChannelTest, TasksOfFilesKnowEachOther) {
  StartPs(ByFiles("ps", "mnist/ps/1"));
  const grpc::Status status =
      Call(Callee::Ps(ByFiles("worker", "mnist/worker/7"), 1));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(
      service_.caller,
      Eq(PeerIdentity{.job = "mnist", .role = PeerRole::kWorker, .index = 7}));
}

TEST_F(SecureChannelTest, NamesOfPodsAreIdentities) {
  const CertificateDirectory directory("pods", "authority");
  directory.Issue({.alternative_names = "DNS:mnist-ps-1.mnist.team.svc"});
  StartPs(Trust::OfFiles(directory.files(), Clock::Real()).value());
  directory.Issue({.alternative_names = "DNS:mnist-worker-7.mnist.team.svc"});
  const grpc::Status status = Call(
      Callee::Ps(Trust::OfFiles(directory.files(), Clock::Real()).value(), 1));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(
      service_.caller,
      Eq(PeerIdentity{.job = "mnist", .role = PeerRole::kWorker, .index = 7}));
}

// Expects that a call reaches nobody, and why.
void ExpectRefused(const grpc::Status& status, absl::string_view why) {
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr(why));
}

TEST_F(SecureChannelTest, AnotherTokenIsRefused) {
  StartPs(ByToken("a", PeerRole::kPs, 1));
  ExpectRefused(Call(Callee::Ps(ByToken("b", PeerRole::kWorker, 7), 1)),
                "the certificate is of another authority than");
  EXPECT_EQ(service_.calls, 0);
}

TEST_F(SecureChannelTest, AnotherTaskThanWasCalledIsRefused) {
  StartPs(ByToken("a", PeerRole::kPs, 1));
  const auto worker = ByToken("a", PeerRole::kWorker, 7);
  ExpectRefused(Call(Callee::Ps(worker, 2)), ", and ps/2 was called");
  ExpectRefused(Call(Callee::Chief(worker)),
                ", and chief/0 or worker/0 was called");
  EXPECT_EQ(service_.calls, 0);
}

TEST_F(SecureChannelTest, AnotherJobOfTheAuthorityIsRefused) {
  StartPs(ByFiles("ps", "mnist/ps/1"));
  ExpectRefused(Call(Callee::Ps(ByFiles("worker", "other/worker/7"), 1)),
                "the certificate is ps/1 of mnist, and this job is other");
  EXPECT_EQ(service_.calls, 0);
}

// Clients that look at nothing: what the server alone lets in.
TEST_F(SecureChannelTest, ServerLetsInTasksOfItsJobOnly) {
  StartPs(ByFiles("ps", "mnist/ps/1"));
  const CertificateDirectory ours("ours", "authority");
  const CertificateDirectory theirs("theirs", "another authority");
  const auto issue = [](const CertificateDirectory& by,
                        const std::string& names,
                        const std::string& end = "99991231235959Z") {
    return by.issuer().Issue({.alternative_names = names, .not_after = end});
  };
  const std::string worker = "URI:spiffe://cluster.local/mnist/worker/7";
  std::string seen;
  EXPECT_TRUE(CallCredulously(issue(ours, worker), &seen).ok());
  EXPECT_EQ(service_.calls, 1);
  for (const KeyMaterial& stranger :
       {KeyMaterial(), issue(theirs, worker),
        issue(ours, worker, "20200101000000Z"), issue(ours, "DNS:localhost"),
        issue(ours, "URI:spiffe://cluster.local/other/worker/7")}) {
    EXPECT_FALSE(CallCredulously(stranger, &seen).ok());
  }
  EXPECT_FALSE(Call({}).ok());
  EXPECT_EQ(service_.calls, 1);
}

TEST_F(SecureChannelTest, NewCertificatesAreTakenWhileCallsGoOn) {
  const CertificateDirectory directory("ps", "authority");
  const auto trust = ByFiles(directory, "mnist/ps/1");
  StartPs(trust);
  const auto worker = ByFiles("worker", "mnist/worker/7");
  std::atomic<bool> done = false;
  std::atomic<int> failures = 0;
  std::thread load([&] {
    const auto kept = MakeControlChannel(address(), Callee::Ps(worker, 1));
    while (!done) {
      failures += !CallOn(kept).ok();
      failures += !Call(Callee::Ps(worker, 1)).ok();
    }
  });
  const KeyMaterial client = directory.issuer().Issue(
      {.alternative_names = "URI:spiffe://cluster.local/mnist/worker/8"});
  std::string old;
  EXPECT_TRUE(CallCredulously(client, &old).ok());
  directory.Issue("mnist/ps/1");
  trust->Reread();
  // gRPC looks at what is published once a second.
  const absl::Time limit = Clock::Real().Now() + absl::Seconds(20);
  std::string seen = old;
  while (seen == old && Clock::Real().Now() < limit) {
    EXPECT_TRUE(CallCredulously(client, &seen).ok());
  }
  EXPECT_NE(seen, old);
  done = true;
  load.join();
  EXPECT_EQ(failures, 0);
}

// Calls a method by its name, with an empty request.
grpc::Status CallMethod(const std::shared_ptr<grpc::Channel>& channel,
                        const std::string& method) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_seconds(20, GPR_TIMESPAN));
  const grpc::ByteBuffer request(nullptr, 0);
  grpc::ByteBuffer response;
  absl::Notification done;
  grpc::Status result;
  stub.UnaryCall(&context, method, {}, &request, &response,
                 [&](grpc::Status status) {
                   result = std::move(status);
                   done.Notify();
                 });
  done.WaitForNotification();
  return result;
}

TEST_F(SecureChannelTest, StrangersReachNoMethodAtAll) {
  StartPs(ByToken("a", PeerRole::kPs, 1));
  std::vector<std::string> methods = {
      "/grpc.health.v1.Health/Check",
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      "/no.such.Service/Method"};
  const google::protobuf::ServiceDescriptor* const service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
          wire::ParameterService::service_full_name());
  ASSERT_NE(service, nullptr);
  for (int i = 0; i < service->method_count(); ++i) {
    methods.push_back(absl::StrCat("/", service->full_name(), "/",
                                   service->method(i)->name()));
  }
  std::string seen;
  const auto in_clear_text = MakeControlChannel(address());
  const auto without_certificate =
      grpc::CreateChannel(address(), Credulous(KeyMaterial(), &seen));
  for (const std::string& method : methods) {
    SCOPED_TRACE(method);
    EXPECT_EQ(CallMethod(in_clear_text, method).error_code(),
              grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(CallMethod(without_certificate, method).error_code(),
              grpc::StatusCode::UNAVAILABLE);
  }
  EXPECT_EQ(service_.calls, 0);
}

TEST_F(SecureChannelTest, PeerInClearTextIsNotTalkedTo) {
  StartPs(nullptr);
  ExpectRefused(Call(Callee::Ps(ByToken("a", PeerRole::kWorker, 7), 1)),
                "wrong version number");
  EXPECT_EQ(service_.calls, 0);
}

}  // namespace
}  // namespace parasol

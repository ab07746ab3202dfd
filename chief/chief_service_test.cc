// Peers of a chief that have keys: each may call what the table of rights says,
// over real connections. The chief's gate is closed, so whoever may call hears
// that the chief is not ready.

#include "chief/chief_service.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/status.h"
#include "cluster/trust/trust.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/chief.grpc.pb.h"

namespace parasol {
namespace {

class ChiefRightsTest : public testing::Test {
 protected:
  ChiefRightsTest()
      : service_(gate_, Rights({.state_place = 2})),
        server_(RpcServer::Start("127.0.0.1:0", service_,
                                 {.trust = KeysOf(PeerRole::kChief, 0)})
                    .value()) {}

  std::shared_ptr<const Trust> KeysOf(PeerRole role, int index) {
    return Trust::OfToken(token_, role, index, Clock::Real());
  }
  std::unique_ptr<wire::ChiefService::Stub> StubOf(const PeerIdentity& peer) {
    return wire::ChiefService::NewStub(
        MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                           Callee::Chief(KeysOf(peer.role, peer.index))));
  }

  const JobToken token_ = JobToken::Parse("a token of sixteen bytes").value();
  ChiefGate gate_;
  ChiefService service_;
  std::unique_ptr<RpcServer> server_;
};

template <typename Request, typename Response>
grpc::StatusCode CodeOf(wire::ChiefService::Stub& stub,
                        grpc::Status (wire::ChiefService::Stub::*rpc)(
                            grpc::ClientContext*, const Request&, Response*),
                        const wire::Task& task) {
  grpc::ClientContext context;
  Request request;
  *request.mutable_task() = task;
  Response response;
  return (stub.*rpc)(&context, request, &response).error_code();
}

PeerIdentity Peer(PeerRole role, int index) {
  return {.job = "mnist", .role = role, .index = index};
}

TEST_F(ChiefRightsTest, EachPeerMayCallWhatTheTableSays) {
  using Stub = wire::ChiefService::Stub;
  const Rights rights({.state_place = 2});
  const std::vector<PeerIdentity> peers = {
      Peer(PeerRole::kChief, 0),     Peer(PeerRole::kPs, 1),
      Peer(PeerRole::kWorker, 0),    Peer(PeerRole::kWorker, 1),
      Peer(PeerRole::kEvaluator, 0), Peer(PeerRole::kOperator, 0)};
  const std::vector<std::pair<std::string, int>> tasks = {
      {"ps", 1}, {"ps", 2}, {"worker", 0}, {"worker", 1}, {"evaluator", 0}};
  for (const PeerIdentity& peer : peers) {
    const auto stub = StubOf(peer);
    for (const auto& [role, index] : tasks) {
      wire::Task task;
      task.set_role(role);
      task.set_index(index);
      SCOPED_TRACE(absl::StrCat(peer.ToString(), " as ", role, "/", index));
      const auto expected = [&](Method method) {
        return rights.Check(method, peer, task).ok()
                   ? grpc::StatusCode::UNAVAILABLE
                   : grpc::StatusCode::PERMISSION_DENIED;
      };
      EXPECT_EQ(CodeOf(*stub, &Stub::Register, task),
                expected(Method::kRegister));
      EXPECT_EQ(CodeOf(*stub, &Stub::Heartbeat, task),
                expected(Method::kHeartbeat));
      EXPECT_EQ(CodeOf(*stub, &Stub::GetPlacement, task),
                expected(Method::kGetPlacement));
      EXPECT_EQ(CodeOf(*stub, &Stub::ClaimSteps, task),
                expected(Method::kClaimSteps));
      EXPECT_EQ(CodeOf(*stub, &Stub::ReportFailure, task),
                expected(Method::kReportFailure));
      EXPECT_EQ(CodeOf(*stub, &Stub::Leave, task), expected(Method::kLeave));
    }
    grpc::ClientContext context;
    wire::JobStatus status;
    EXPECT_OK(FromGrpcStatus(stub->GetStatus(&context, {}, &status), "chief"));
  }
}

}  // namespace
}  // namespace parasol

// Peers of a ps that have keys: each may call what the table of rights says,
// over real connections.

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/rpc/status.h"
#include "cluster/trust/process_secret.h"
#include "cluster/trust/trust.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "ps/exchange/testing/parameter_service_fixture.h"

namespace parasol {
namespace {

constexpr uint64_t kOwnIncarnation = 0x77;

class PeerRightsTest : public ParameterServiceTest {
 protected:
  PeerRightsTest()
      : guarded_(server_, metrics_, kBufferBytes, nullptr,
                 {.incarnation = kOwnIncarnation}),
        door_(
            RpcServer::Start("127.0.0.1:0", guarded_,
                             {.threads = 1, .trust = KeysOf(PeerRole::kPs, 0)})
                .value()) {}

  std::shared_ptr<const Trust> KeysOf(PeerRole role, int index) {
    return Trust::OfToken(token_, role, index, Clock::Real());
  }
  std::unique_ptr<wire::ParameterService::Stub> StubOf(PeerRole role,
                                                       int index) {
    return wire::ParameterService::NewStub(
        MakeTensorChannel(absl::StrCat("127.0.0.1:", door_->port()),
                          Callee::Ps(KeysOf(role, index), 0)));
  }
  // Pushes as the worker that the admission names, and returns how that ends.
  absl::Status Push(PeerRole role, int index, const AdmittedWorker& worker) {
    const auto stub = StubOf(role, index);
    grpc::ClientContext context;
    context.AddMetadata(kAdmissionKey, AdmissionOf(worker, kOwnIncarnation));
    const auto stream = stub->Exchange(&context);
    stream->Write(PushOf(worker.incarnation, 1, -1));
    stream->WritesDone();
    wire::ExchangeResponse response;
    while (stream->Read(&response)) {
    }
    return FromGrpcStatus(stream->Finish(), "ps/0");
  }

  const JobToken token_ = JobToken::Parse("a token of sixteen bytes").value();
  ParameterService guarded_;
  std::unique_ptr<RpcServer> door_;
};

TEST_F(PeerRightsTest, OnlyTheChiefOrders) {
  for (const PeerRole role :
       {PeerRole::kChief, PeerRole::kPs, PeerRole::kWorker,
        PeerRole::kEvaluator, PeerRole::kOperator}) {
    const auto stub = StubOf(role, 0);
    // An order of nothing is refused all the same.
    const auto refused = StatusIs(role == PeerRole::kChief
                                      ? absl::StatusCode::kInvalidArgument
                                      : absl::StatusCode::kPermissionDenied);
    grpc::ClientContext load, prepare, snapshot;
    wire::LoadResponse loaded;
    EXPECT_THAT(FromGrpcStatus(stub->Load(&load, {}, &loaded), "ps/0"),
                refused);
    wire::SnapshotResponse written;
    EXPECT_THAT(FromGrpcStatus(stub->Snapshot(&snapshot, {}, &written), "ps/0"),
                refused);
    wire::PrepareSnapshotResponse prepared;
    const grpc::Status held = stub->PrepareSnapshot(&prepare, {}, &prepared);
    EXPECT_EQ(held.error_code() == grpc::StatusCode::PERMISSION_DENIED,
              role != PeerRole::kChief);
  }
}

TEST_F(PeerRightsTest, AWorkerPushesAsItselfOnly) {
  EXPECT_OK(Push(PeerRole::kWorker, 1, {.index = 1, .incarnation = 7}));
  EXPECT_THAT(Push(PeerRole::kWorker, 1, {.index = 0, .incarnation = 6}),
              StatusIs(absl::StatusCode::kPermissionDenied));
  for (const PeerRole role : {PeerRole::kChief, PeerRole::kPs,
                              PeerRole::kEvaluator, PeerRole::kOperator}) {
    EXPECT_THAT(Push(role, 1, {.index = 1, .incarnation = 7}),
                StatusIs(absl::StatusCode::kPermissionDenied));
  }
  EXPECT_EQ(metrics_.pushes_total.value(), 1);
}

}  // namespace
}  // namespace parasol

// Who may open a stream to a ps in a job without keys: workers that the chief
// has admitted to this process.

#include <cstdint>
#include <memory>
#include <string>

#include "base/status_matchers.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/rpc/status.h"
#include "cluster/trust/process_secret.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "ps/exchange/testing/parameter_service_fixture.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

constexpr uint64_t kPs = 0x77;
constexpr uint64_t kWorker = 7;

// A fixture whose ps has a second port, at which workers show admissions.
class AdmissionTest : public ParameterServiceTest {
 protected:
  AdmissionTest()
      : lanes_(PayloadHost::Start("127.0.0.1", 0, 1, kBufferBytes).value()),
        guarded_(server_, metrics_, kBufferBytes, lanes_.get(),
                 {.incarnation = kPs}),
        door_(
            RpcServer::Start("127.0.0.1:0", guarded_, {.threads = 1}).value()) {
  }

  // Opens a stream with the admission; empty: without one.
  std::unique_ptr<Stream> Open(grpc::ClientContext& context,
                               const std::string& admission) {
    if (!admission.empty()) context.AddMetadata(kAdmissionKey, admission);
    stub_ = wire::ParameterService::NewStub(
        MakeTensorChannel(absl::StrCat("127.0.0.1:", door_->port())));
    return stub_->Exchange(&context);
  }
  absl::Status EndOf(Stream& stream) {
    return FromGrpcStatus(stream.Finish(), "ps/0");
  }
  std::string Values() {
    const auto stub = NewStub();
    grpc::ClientContext context;
    return BytesOf(Ask(*stub->Exchange(&context), PullOf(1)));
  }

  const std::string admission_ =
      AdmissionOf({.index = 1, .incarnation = kWorker}, kPs);
  std::unique_ptr<PayloadHost> lanes_;
  ParameterService guarded_;
  std::unique_ptr<RpcServer> door_;
  std::unique_ptr<wire::ParameterService::Stub> stub_;
};

TEST_F(AdmissionTest, AnAdmittedWorkerPushesAndPulls) {
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = Open(context, admission_);
  EXPECT_EQ(CodeOf(Ask(*stream, PushOf(kWorker, 1, -1))), 0);
  wire::ExchangeRequest pull = PullOf(2);
  pull.mutable_header()->set_worker_incarnation(kWorker);
  EXPECT_EQ(BytesOf(Ask(*stream, pull)), Floats(kElements, 1));
  stream->WritesDone();
  EXPECT_OK(EndOf(*stream));
}

TEST_F(AdmissionTest, WhoeverIsNotAdmittedNeitherPushesNorPulls) {
  for (const std::string& admission :
       {std::string(), std::string("worker.1.7.00"),
        AdmissionOf({.index = 1, .incarnation = kWorker}, kPs + 2),
        admission_ + "0"}) {
    for (const wire::ExchangeRequest& request :
         {PushOf(kWorker, 1, -1), PullOf(1)}) {
      grpc::ClientContext context;
      const std::unique_ptr<Stream> stream = Open(context, admission);
      stream->Write(request);
      wire::ExchangeResponse response;
      EXPECT_FALSE(stream->Read(&response));
      EXPECT_THAT(EndOf(*stream),
                  StatusIs(absl::StatusCode::kPermissionDenied));
    }
  }
  EXPECT_EQ(Values(), Floats(kElements, 0));
}

TEST_F(AdmissionTest, NobodyPushesAsAnotherProcess) {
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = Open(context, admission_);
  EXPECT_EQ(CodeOf(Ask(*stream, PushOf(kWorker, 1, -1))), 0);
  ASSERT_TRUE(stream->Write(PushOf(kWorker + 1, 1, -1)));
  wire::ExchangeResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_THAT(EndOf(*stream), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_EQ(Values(), Floats(kElements, 1));
}

TEST_F(AdmissionTest, AStrangerIsOfferedNeitherALaneNorMemory) {
  grpc::ClientContext context;
  context.AddMetadata(kPayloadLaneKey, kPayloadLaneRequest);
  context.AddMetadata(kSharedMemoryKey, "/proc/self/fd/0");
  const std::unique_ptr<Stream> stream = Open(context, "");
  EXPECT_THAT(EndOf(*stream), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_TRUE(context.GetServerInitialMetadata().find(kPayloadLaneKey) ==
              context.GetServerInitialMetadata().end());
  door_->Stop(absl::Seconds(10));
  EXPECT_EQ(metrics_.streams.value(), 0);
}

}  // namespace
}  // namespace parasol

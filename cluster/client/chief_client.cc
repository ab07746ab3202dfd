#include "cluster/client/chief_client.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/proto_duration.h"
#include "cluster/rpc/status.h"
#include "grpcpp/client_context.h"
#include "proto/chief.grpc.pb.h"

namespace parasol {
namespace {

constexpr absl::Duration kConnectWait = absl::Milliseconds(200);

class GrpcChiefClient : public ChiefClient {
 public:
  GrpcChiefClient(const std::string& address, absl::Duration call_deadline)
      : peer_(absl::StrCat("chief at ", address)),
        call_deadline_(call_deadline),
        channel_(MakeControlChannel(address)),
        stub_(wire::ChiefService::NewStub(channel_)) {}

  absl::StatusOr<wire::RegisterResponse> Register(
      const wire::RegisterRequest& request) override {
    return Call(&wire::ChiefService::Stub::Register, request);
  }
  absl::StatusOr<wire::HeartbeatResponse> Heartbeat(
      const wire::HeartbeatRequest& request) override {
    return Call(&wire::ChiefService::Stub::Heartbeat, request);
  }
  absl::StatusOr<wire::GetPlacementResponse> GetPlacement() override {
    return Call(&wire::ChiefService::Stub::GetPlacement,
                wire::GetPlacementRequest());
  }
  absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest& request) override {
    return Call(&wire::ChiefService::Stub::ClaimSteps, request,
                FromProto(request.wait()));
  }
  absl::Status ReportFailure(
      const wire::ReportFailureRequest& request) override {
    return Call(&wire::ChiefService::Stub::ReportFailure, request).status();
  }
  absl::Status Leave(const wire::LeaveRequest& request) override {
    return Call(&wire::ChiefService::Stub::Leave, request).status();
  }
  absl::StatusOr<wire::JobStatus> GetStatus() override {
    return Call(&wire::ChiefService::Stub::GetStatus, wire::GetStatusRequest());
  }

 private:
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      grpc::Status (wire::ChiefService::Stub::*rpc)(grpc::ClientContext*,
                                                    const Request&, Response*),
      const Request& request, absl::Duration wait = absl::ZeroDuration()) {
    grpc::ClientContext context;
    context.set_deadline(
        absl::ToChronoTime(Clock::Real().Now() + wait + call_deadline_));
    Response response;
    grpc::Status status = (stub_.get()->*rpc)(&context, request, &response);
    if (status.ok()) return response;
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) Reconnect();
    return FromGrpcStatus(status, peer_);
  }

  // A connection is completed by threads that wait for something of gRPC's. In
  // a process without a server there may be none but this one: a caller that
  // gave up at once and asked again later would never be connected.
  void Reconnect() {
    ReconnectNow(*channel_);
    channel_->WaitForConnected(absl::ToChronoTime(
        Clock::Real().Now() + std::min(call_deadline_, kConnectWait)));
  }

  const std::string peer_;
  const absl::Duration call_deadline_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<wire::ChiefService::Stub> stub_;
};

}  // namespace

std::unique_ptr<ChiefClient> ChiefClient::Create(const std::string& address,
                                                 absl::Duration call_deadline) {
  return std::make_unique<GrpcChiefClient>(address, call_deadline);
}

}  // namespace parasol

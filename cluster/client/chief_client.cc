#include "cluster/client/chief_client.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
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
        address_(address),
        call_deadline_(call_deadline) {}

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

  void DropConnection() override {
    absl::MutexLock lock(&mu_);
    connection_ = nullptr;
  }

 private:
  struct Connection {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<wire::ChiefService::Stub> stub;
  };

  std::shared_ptr<Connection> NewestConnection() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (connection_ == nullptr) {
      connection_ = std::make_shared<Connection>();
      connection_->channel = MakeControlChannel(address_);
      connection_->stub = wire::ChiefService::NewStub(connection_->channel);
    }
    return connection_;
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      grpc::Status (wire::ChiefService::Stub::*rpc)(grpc::ClientContext*,
                                                    const Request&, Response*),
      const Request& request, absl::Duration wait = absl::ZeroDuration()) {
    grpc::ClientContext context;
    context.set_deadline(
        absl::ToChronoTime(Clock::Real().Now() + wait + call_deadline_));
    const std::shared_ptr<Connection> connection = NewestConnection();
    Response response;
    grpc::Status status =
        (connection->stub.get()->*rpc)(&context, request, &response);
    if (status.ok()) return response;
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      Reconnect(*connection->channel);
    }
    return FromGrpcStatus(status, peer_);
  }

  // A connection is completed by threads that wait for something of gRPC's. In
  // a process without a server there may be none but this one: a caller that
  // gave up at once and asked again later would never be connected.
  void Reconnect(grpc::Channel& channel) {
    ReconnectNow(channel);
    channel.WaitForConnected(absl::ToChronoTime(
        Clock::Real().Now() + std::min(call_deadline_, kConnectWait)));
  }

  const std::string peer_;
  const std::string address_;
  const absl::Duration call_deadline_;

  absl::Mutex mu_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<ChiefClient> ChiefClient::Create(const std::string& address,
                                                 absl::Duration call_deadline) {
  return std::make_unique<GrpcChiefClient>(address, call_deadline);
}

}  // namespace parasol

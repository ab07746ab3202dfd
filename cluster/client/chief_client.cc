#include "cluster/client/chief_client.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/control_channel.h"
#include "cluster/rpc/deadline.h"
#include "cluster/rpc/proto_duration.h"
#include "cluster/rpc/status.h"
#include "grpcpp/client_context.h"
#include "proto/chief.grpc.pb.h"

namespace parasol {
namespace {

constexpr absl::Duration kConnectWait = absl::Milliseconds(200);

class GrpcChiefClient : public ChiefClient {
 public:
  GrpcChiefClient(const std::string& address, absl::Duration call_deadline,
                  Callee callee)
      : peer_(absl::StrCat("chief at ", address)),
        call_deadline_(call_deadline),
        channel_(address, std::move(callee)) {}

  absl::StatusOr<wire::RegisterResponse> Register(
      const wire::RegisterRequest& request) override {
    {
      absl::MutexLock lock(&mu_);
      task_ = request.task();
    }
    return Heard(Call(&wire::ChiefService::Stub::Register, Named(request)));
  }
  absl::StatusOr<wire::HeartbeatResponse> Heartbeat(
      const wire::HeartbeatRequest& request) override {
    return Heard(Call(&wire::ChiefService::Stub::Heartbeat, Named(request)));
  }
  absl::StatusOr<wire::GetPlacementResponse> GetPlacement() override {
    wire::GetPlacementRequest request;
    {
      absl::MutexLock lock(&mu_);
      *request.mutable_task() = task_;
    }
    return Call(&wire::ChiefService::Stub::GetPlacement, Named(request));
  }
  absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest& request) override {
    return Call(&wire::ChiefService::Stub::ClaimSteps, Named(request),
                FromProto(request.wait()));
  }
  absl::Status ReportFailure(
      const wire::ReportFailureRequest& request) override {
    return Call(&wire::ChiefService::Stub::ReportFailure, Named(request))
        .status();
  }
  absl::Status Leave(const wire::LeaveRequest& request) override {
    return Call(&wire::ChiefService::Stub::Leave, Named(request)).status();
  }
  absl::StatusOr<wire::JobStatus> GetStatus() override {
    return Call(&wire::ChiefService::Stub::GetStatus, wire::GetStatusRequest());
  }
  absl::StatusOr<wire::InspectResponse> Inspect(
      const wire::InspectRequest& request) override {
    return Call(&wire::ChiefService::Stub::Inspect, request);
  }

  void DropConnection() override { channel_.Drop(); }

 private:
  // Returns the request with the newest chief that was heard of.
  template <typename Request>
  Request Named(Request request) const {
    request.mutable_task()->set_chief_epoch(chief_epoch_);
    return request;
  }
  template <typename Response>
  absl::StatusOr<Response> Heard(absl::StatusOr<Response> response) {
    if (!response.ok()) return response;
    int64_t known = chief_epoch_;
    while (
        known < response->chief_epoch() &&
        !chief_epoch_.compare_exchange_weak(known, response->chief_epoch())) {
    }
    return response;
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      grpc::Status (wire::ChiefService::Stub::*rpc)(grpc::ClientContext*,
                                                    const Request&, Response*),
      const Request& request, absl::Duration wait = absl::ZeroDuration()) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(wait + call_deadline_));
    const std::shared_ptr<grpc::Channel> channel = channel_.Get();
    const auto stub = wire::ChiefService::NewStub(channel);
    Response response;
    const grpc::Status status =
        (stub.get()->*rpc)(&context, request, &response);
    if (status.ok()) return response;
    if (status.error_code() == grpc::StatusCode::ABORTED) {
      // A chief that was replaced: its successor has the address by now.
      channel_.Drop();
      return absl::UnavailableError(
          absl::StrCat(peer_, ": ", status.error_message()));
    }
    channel_.NoteResult(channel, status);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      Reconnect(*channel);
    }
    return FromGrpcStatus(status, peer_);
  }

  // A connection is completed by threads that wait for something of gRPC's. In
  // a process without a server there may be none but this one: a caller that
  // gave up at once and asked again later would never be connected.
  void Reconnect(grpc::Channel& channel) {
    ReconnectNow(channel);
    channel.WaitForConnected(
        DeadlineIn(std::min(call_deadline_, kConnectWait)));
  }

  const std::string peer_;
  const absl::Duration call_deadline_;
  ControlChannel channel_;
  std::atomic<int64_t> chief_epoch_ = 0;
  absl::Mutex mu_;
  // The task that has registered last.
  wire::Task task_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<ChiefClient> ChiefClient::Create(const std::string& address,
                                                 absl::Duration call_deadline,
                                                 Callee callee) {
  return std::make_unique<GrpcChiefClient>(address, call_deadline,
                                           std::move(callee));
}

}  // namespace parasol

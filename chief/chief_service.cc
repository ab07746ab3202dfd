#include "chief/chief_service.h"

#include <utility>

#include "cluster/rpc/completion_thread.h"
#include "cluster/rpc/peer.h"
#include "cluster/rpc/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_unary_call.h"

namespace parasol {

// One ClaimSteps call, from before it is accepted to its end. Deletes itself
// then.
class ChiefService::ClaimCall {
 public:
  ClaimCall(ChiefService& service, grpc::ServerCompletionQueue& queue)
      : service_(service), queue_(queue) {}

  void Accept() {
    service_.RequestClaimSteps(&context_, &request_, &responder_, &queue_,
                               &queue_, &accepted_);
  }

 private:
  using Tag = MemberTag<ClaimCall>;

  void OnAccepted(bool ok) {
    // The server is shutting down; the call has never begun.
    if (!ok) return End();
    service_.AcceptOn(queue_);
    const absl::Status allowed = service_.rights_.Check(
        Method::kClaimSteps, PeerOf(context_), request_.task());
    if (!allowed.ok()) return Answer(allowed);
    service_.gate_.ClaimSteps(
        request_, [this](const absl::StatusOr<wire::ClaimStepsResponse>& got) {
          Answer(got);
        });
  }
  // Called by any thread. The call may be gone when this returns.
  void Answer(const absl::StatusOr<wire::ClaimStepsResponse>& got) {
    if (got.ok()) {
      responder_.Finish(*got, grpc::Status::OK, &finished_);
    } else {
      responder_.FinishWithError(ToGrpcStatus(got.status()), &finished_);
    }
  }
  void OnFinished(bool) { End(); }
  void End() {
    ChiefService& service = service_;
    delete this;
    service.OnEnded();
  }

  ChiefService& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  wire::ClaimStepsRequest request_;
  grpc::ServerAsyncResponseWriter<wire::ClaimStepsResponse> responder_{
      &context_};
  Tag accepted_{this, &ClaimCall::OnAccepted};
  Tag finished_{this, &ClaimCall::OnFinished};
};

void ChiefService::AcceptOn(grpc::ServerCompletionQueue& queue) {
  {
    absl::MutexLock lock(&mu_);
    ++calls_;
  }
  (new ClaimCall(*this, queue))->Accept();
}

void ChiefService::AwaitNoCalls() {
  absl::MutexLock lock(&mu_);
  const auto has_none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return calls_ == 0;
  };
  mu_.Await(absl::Condition(&has_none));
}

void ChiefService::OnEnded() {
  absl::MutexLock lock(&mu_);
  --calls_;
}

grpc::Status ChiefService::Register(grpc::ServerContext* context,
                                    const wire::RegisterRequest* request,
                                    wire::RegisterResponse* response) {
  return Call(Method::kRegister, *context, &ChiefServer::Register, *request,
              response);
}

grpc::Status ChiefService::Heartbeat(grpc::ServerContext* context,
                                     const wire::HeartbeatRequest* request,
                                     wire::HeartbeatResponse* response) {
  return Call(Method::kHeartbeat, *context, &ChiefServer::Heartbeat, *request,
              response);
}

grpc::Status ChiefService::GetPlacement(
    grpc::ServerContext* context, const wire::GetPlacementRequest* request,
    wire::GetPlacementResponse* response) {
  return Call(Method::kGetPlacement, *context, &ChiefServer::GetPlacement,
              *request, response);
}

grpc::Status ChiefService::ReportFailure(
    grpc::ServerContext* context, const wire::ReportFailureRequest* request,
    wire::ReportFailureResponse* response) {
  return Call(Method::kReportFailure, *context, &ChiefServer::ReportFailure,
              *request, response);
}

grpc::Status ChiefService::Leave(grpc::ServerContext* context,
                                 const wire::LeaveRequest* request,
                                 wire::LeaveResponse* response) {
  return Call(Method::kLeave, *context, &ChiefServer::Leave, *request,
              response);
}

grpc::Status ChiefService::GetStatus(grpc::ServerContext* context,
                                     const wire::GetStatusRequest* request,
                                     wire::JobStatus* response) {
  return CheckedCall(rights_, Method::kGetStatus, *context, response,
                     [&] { return gate_.GetStatus(*request); });
}

grpc::Status ChiefService::Inspect(grpc::ServerContext* context,
                                   const wire::InspectRequest* request,
                                   wire::InspectResponse* response) {
  return CheckedCall(rights_, Method::kInspect, *context, response, [&] {
    return gate_.Call(&ChiefServer::Inspect, *request);
  });
}

}  // namespace parasol

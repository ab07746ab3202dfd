#include "worker/shown/lone_status_service.h"

#include "absl/status/statusor.h"
#include "cluster/rights/checked_call.h"
#include "grpcpp/server_context.h"

namespace parasol {

grpc::Status LoneStatusService::GetStatus(grpc::ServerContext* context,
                                          const wire::GetStatusRequest*,
                                          wire::JobStatus* response) {
  return CheckedCall(rights_, Method::kGetStatus, *context, response, [this] {
    return absl::StatusOr<wire::JobStatus>(shown_.Status());
  });
}

grpc::Status LoneStatusService::Inspect(grpc::ServerContext* context,
                                        const wire::InspectRequest* request,
                                        wire::InspectResponse* response) {
  return CheckedCall(rights_, Method::kInspect, *context, response,
                     [&] { return shown_.Inspect(*request); });
}

grpc::Status LoneStatusService::Heartbeat(grpc::ServerContext* context,
                                          const wire::HeartbeatRequest* request,
                                          wire::HeartbeatResponse* response) {
  return CheckedCall(rights_, Method::kHeartbeat, *context, request->task(),
                     response, [&] { return shown_.Heartbeat(*request); });
}

}  // namespace parasol

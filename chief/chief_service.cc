#include "chief/chief_service.h"

#include "cluster/rpc/status.h"

namespace parasol {
grpc::Status ChiefService::Register(grpc::ServerContext*,
                                    const wire::RegisterRequest* request,
                                    wire::RegisterResponse* response) {
  return Answer(gate_.Call(&ChiefServer::Register, *request), response);
}

grpc::Status ChiefService::Heartbeat(grpc::ServerContext*,
                                     const wire::HeartbeatRequest* request,
                                     wire::HeartbeatResponse* response) {
  return Answer(gate_.Call(&ChiefServer::Heartbeat, *request), response);
}

grpc::Status ChiefService::GetPlacement(
    grpc::ServerContext*, const wire::GetPlacementRequest* request,
    wire::GetPlacementResponse* response) {
  return Answer(gate_.Call(&ChiefServer::GetPlacement, *request), response);
}

grpc::Status ChiefService::ClaimSteps(grpc::ServerContext*,
                                      const wire::ClaimStepsRequest* request,
                                      wire::ClaimStepsResponse* response) {
  return Answer(gate_.Call(&ChiefServer::ClaimSteps, *request), response);
}

grpc::Status ChiefService::ReportFailure(
    grpc::ServerContext*, const wire::ReportFailureRequest* request,
    wire::ReportFailureResponse* response) {
  return Answer(gate_.Call(&ChiefServer::ReportFailure, *request), response);
}

grpc::Status ChiefService::Leave(grpc::ServerContext*,
                                 const wire::LeaveRequest* request,
                                 wire::LeaveResponse* response) {
  return Answer(gate_.Call(&ChiefServer::Leave, *request), response);
}

grpc::Status ChiefService::GetStatus(grpc::ServerContext*,
                                     const wire::GetStatusRequest* request,
                                     wire::JobStatus* response) {
  return Answer(gate_.GetStatus(*request), response);
}

}  // namespace parasol

#ifndef PARASOL_CHIEF_CHIEF_SERVICE_H_
#define PARASOL_CHIEF_CHIEF_SERVICE_H_

#include "chief/chief_gate.h"
#include "proto/chief.grpc.pb.h"

namespace parasol {

// The gRPC service in front of a ChiefServer. The gate to the server must
// outlive the service.
class ChiefService : public wire::ChiefService::Service {
 public:
  explicit ChiefService(ChiefGate& gate) : gate_(gate) {}

  grpc::Status Register(grpc::ServerContext* context,
                        const wire::RegisterRequest* request,
                        wire::RegisterResponse* response) override;
  grpc::Status Heartbeat(grpc::ServerContext* context,
                         const wire::HeartbeatRequest* request,
                         wire::HeartbeatResponse* response) override;
  grpc::Status GetPlacement(grpc::ServerContext* context,
                            const wire::GetPlacementRequest* request,
                            wire::GetPlacementResponse* response) override;
  grpc::Status ClaimSteps(grpc::ServerContext* context,
                          const wire::ClaimStepsRequest* request,
                          wire::ClaimStepsResponse* response) override;
  grpc::Status ReportFailure(grpc::ServerContext* context,
                             const wire::ReportFailureRequest* request,
                             wire::ReportFailureResponse* response) override;
  grpc::Status Leave(grpc::ServerContext* context,
                     const wire::LeaveRequest* request,
                     wire::LeaveResponse* response) override;
  grpc::Status GetStatus(grpc::ServerContext* context,
                         const wire::GetStatusRequest* request,
                         wire::JobStatus* response) override;

 private:
  ChiefGate& gate_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_CHIEF_SERVICE_H_

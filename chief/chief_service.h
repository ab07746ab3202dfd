#ifndef PARASOL_CHIEF_CHIEF_SERVICE_H_
#define PARASOL_CHIEF_CHIEF_SERVICE_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "chief/chief_gate.h"
#include "cluster/rpc/server.h"
#include "proto/chief.grpc.pb.h"

namespace parasol {

// The gRPC service in front of a ChiefServer. A claim that waits holds no
// thread: its call is answered on a polled queue, the others on gRPC's threads.
// The gate to the server must outlive the service.
class ChiefService : public wire::ChiefService::WithAsyncMethod_ClaimSteps<
                         wire::ChiefService::Service>,
                     public PolledService {
 public:
  explicit ChiefService(ChiefGate& gate) : gate_(gate) {}

  grpc::Service& service() override { return *this; }
  void AcceptOn(grpc::ServerCompletionQueue& queue) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void AwaitNoCalls() override ABSL_LOCKS_EXCLUDED(mu_);

  grpc::Status Register(grpc::ServerContext* context,
                        const wire::RegisterRequest* request,
                        wire::RegisterResponse* response) override;
  grpc::Status Heartbeat(grpc::ServerContext* context,
                         const wire::HeartbeatRequest* request,
                         wire::HeartbeatResponse* response) override;
  grpc::Status GetPlacement(grpc::ServerContext* context,
                            const wire::GetPlacementRequest* request,
                            wire::GetPlacementResponse* response) override;
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
  class ClaimCall;

  // Called once for each AcceptOn(), when its call has ended.
  void OnEnded() ABSL_LOCKS_EXCLUDED(mu_);

  ChiefGate& gate_;
  absl::Mutex mu_;
  // Number of calls, including those that wait to be accepted.
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_CHIEF_SERVICE_H_

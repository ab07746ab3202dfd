#ifndef PARASOL_CHIEF_CHIEF_SERVICE_H_
#define PARASOL_CHIEF_CHIEF_SERVICE_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "chief/chief_gate.h"
#include "cluster/rights/checked_call.h"
#include "cluster/rights/rights.h"
#include "cluster/rpc/server.h"
#include "proto/chief.grpc.pb.h"

namespace parasol {

// The gRPC service in front of a ChiefServer. A claim that waits holds no
// thread: its call is answered on a polled queue, the others on gRPC's threads.
// Each call is first compared with the rights of the peer that makes it.
// The gate to the server must outlive the service.
class ChiefService : public wire::ChiefService::WithAsyncMethod_ClaimSteps<
                         wire::ChiefService::Service>,
                     public PolledService {
 public:
  ChiefService(ChiefGate& gate, const Rights& rights)
      : gate_(gate), rights_(rights) {}

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
  grpc::Status Inspect(grpc::ServerContext* context,
                       const wire::InspectRequest* request,
                       wire::InspectResponse* response) override;

 private:
  class ClaimCall;

  // Called once for each AcceptOn(), when its call has ended.
  void OnEnded() ABSL_LOCKS_EXCLUDED(mu_);

  // Makes the call, if the peer may make it for the task that it names.
  template <typename Request, typename Response>
  grpc::Status Call(
      Method method, const grpc::ServerContext& context,
      absl::StatusOr<Response> (ChiefServer::*rpc)(const Request&),
      const Request& request, Response* response) {
    return CheckedCall(rights_, method, context, request.task(), response,
                       [&] { return gate_.Call(rpc, request); });
  }

  ChiefGate& gate_;
  const Rights rights_;
  absl::Mutex mu_;
  // Number of calls, including those that wait to be accepted.
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_CHIEF_SERVICE_H_

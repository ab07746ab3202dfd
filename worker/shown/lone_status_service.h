#ifndef PARASOL_WORKER_SHOWN_LONE_STATUS_SERVICE_H_
#define PARASOL_WORKER_SHOWN_LONE_STATUS_SERVICE_H_

#include "cluster/rights/rights.h"
#include "proto/chief.grpc.pb.h"
#include "worker/shown/lone_status.h"

namespace parasol {

// The gRPC service of a worker without a cluster, and of a program with a loop
// of its own: GetStatus and Inspect, for each peer that has proven that it is
// of the job, and the heartbeats of the program's other processes. All other
// calls are for chiefs, and answered with UNIMPLEMENTED.
class LoneStatusService : public wire::ChiefService::Service {
 public:
  // `shown` is asked from any threads until the service's server has ended.
  explicit LoneStatusService(LoneStatus& shown) : shown_(shown) {}

  grpc::Status GetStatus(grpc::ServerContext* context,
                         const wire::GetStatusRequest* request,
                         wire::JobStatus* response) override;
  grpc::Status Inspect(grpc::ServerContext* context,
                       const wire::InspectRequest* request,
                       wire::InspectResponse* response) override;
  grpc::Status Heartbeat(grpc::ServerContext* context,
                         const wire::HeartbeatRequest* request,
                         wire::HeartbeatResponse* response) override;

 private:
  LoneStatus& shown_;
  const Rights rights_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_SHOWN_LONE_STATUS_SERVICE_H_

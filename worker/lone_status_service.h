#ifndef PARASOL_WORKER_LONE_STATUS_SERVICE_H_
#define PARASOL_WORKER_LONE_STATUS_SERVICE_H_

#include "proto/chief.grpc.pb.h"
#include "worker/lone_training.h"

namespace parasol {

// The gRPC service of a worker without a cluster: GetStatus. All other calls
// are for chiefs, and answered with UNIMPLEMENTED.
class LoneStatusService : public wire::ChiefService::Service {
 public:
  // `training` must outlive the service.
  explicit LoneStatusService(const LoneTraining& training)
      : training_(training) {}

  grpc::Status GetStatus(grpc::ServerContext* context,
                         const wire::GetStatusRequest* request,
                         wire::JobStatus* response) override;

 private:
  const LoneTraining& training_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LONE_STATUS_SERVICE_H_

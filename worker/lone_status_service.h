#ifndef PARASOL_WORKER_LONE_STATUS_SERVICE_H_
#define PARASOL_WORKER_LONE_STATUS_SERVICE_H_

#include <functional>
#include <utility>

#include "proto/chief.grpc.pb.h"

namespace parasol {

// The gRPC service of a worker without a cluster, and of a program with a loop
// of its own: GetStatus. All other calls are for chiefs, and answered with
// UNIMPLEMENTED.
class LoneStatusService : public wire::ChiefService::Service {
 public:
  // `status` is called from any threads until the service's server has ended.
  explicit LoneStatusService(std::function<wire::JobStatus()> status)
      : status_(std::move(status)) {}

  grpc::Status GetStatus(grpc::ServerContext* context,
                         const wire::GetStatusRequest* request,
                         wire::JobStatus* response) override;

 private:
  const std::function<wire::JobStatus()> status_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LONE_STATUS_SERVICE_H_

#ifndef PARASOL_WORKER_LOCAL_LOCAL_STATUS_SERVICE_H_
#define PARASOL_WORKER_LOCAL_LOCAL_STATUS_SERVICE_H_

#include "proto/chief.grpc.pb.h"
#include "worker/local/local_status.h"

namespace parasol {

// The gRPC service of a LocalStatus: GetStatus. All other calls are for chiefs,
// and answered with UNIMPLEMENTED.
class LocalStatusService : public wire::ChiefService::Service {
 public:
  // `status` must outlive the service.
  explicit LocalStatusService(const LocalStatus& status) : status_(status) {}

  grpc::Status GetStatus(grpc::ServerContext* context,
                         const wire::GetStatusRequest* request,
                         wire::JobStatus* response) override;

 private:
  const LocalStatus& status_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_LOCAL_STATUS_SERVICE_H_

#include "worker/lone_status_service.h"

namespace parasol {

grpc::Status LoneStatusService::GetStatus(grpc::ServerContext* /*context*/,
                                          const wire::GetStatusRequest*,
                                          wire::JobStatus* response) {
  *response = status_();
  return grpc::Status::OK;
}

}  // namespace parasol

#include "worker/group/state/state_service.h"

#include "cluster/rpc/status.h"

namespace parasol {

grpc::Status StateService::Load(grpc::ServerContext*,
                                const wire::LoadRequest* request,
                                wire::LoadResponse* response) {
  return Answer(orders_.Load(*request), response);
}

grpc::Status StateService::Snapshot(grpc::ServerContext* context,
                                    const wire::SnapshotRequest* request,
                                    wire::SnapshotResponse* response) {
  const auto is_cancelled = [context] { return context->IsCancelled(); };
  return Answer(orders_.Snapshot(*request, is_cancelled), response);
}

grpc::Status StateService::PrepareSnapshot(
    grpc::ServerContext*, const wire::PrepareSnapshotRequest* request,
    wire::PrepareSnapshotResponse* response) {
  return Answer(orders_.PrepareSnapshot(*request), response);
}

}  // namespace parasol

#include "worker/group/state/state_service.h"

#include "cluster/rights/checked_call.h"

namespace parasol {

grpc::Status StateService::Load(grpc::ServerContext* context,
                                const wire::LoadRequest* request,
                                wire::LoadResponse* response) {
  return CheckedCall(rights_, Method::kLoad, *context, response,
                     [&] { return orders_.Load(*request); });
}

grpc::Status StateService::Snapshot(grpc::ServerContext* context,
                                    const wire::SnapshotRequest* request,
                                    wire::SnapshotResponse* response) {
  const auto is_cancelled = [context] { return context->IsCancelled(); };
  return CheckedCall(rights_, Method::kSnapshot, *context, response,
                     [&] { return orders_.Snapshot(*request, is_cancelled); });
}

grpc::Status StateService::PrepareSnapshot(
    grpc::ServerContext* context, const wire::PrepareSnapshotRequest* request,
    wire::PrepareSnapshotResponse* response) {
  return CheckedCall(rights_, Method::kPrepareSnapshot, *context, response,
                     [&] { return orders_.PrepareSnapshot(*request); });
}

}  // namespace parasol

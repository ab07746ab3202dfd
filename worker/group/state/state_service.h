#ifndef PARASOL_WORKER_GROUP_STATE_STATE_SERVICE_H_
#define PARASOL_WORKER_GROUP_STATE_STATE_SERVICE_H_

#include "proto/parameter.grpc.pb.h"
#include "worker/group/state/state_orders.h"

namespace parasol {

// The gRPC service in front of StateOrders. It exchanges no tensors with
// workers: Exchange is answered with UNIMPLEMENTED.
class StateService : public wire::ParameterService::Service {
 public:
  // `orders` must outlive the service.
  explicit StateService(StateOrders& orders) : orders_(orders) {}

  grpc::Status Load(grpc::ServerContext*, const wire::LoadRequest* request,
                    wire::LoadResponse* response) override;
  grpc::Status Snapshot(grpc::ServerContext* context,
                        const wire::SnapshotRequest* request,
                        wire::SnapshotResponse* response) override;
  grpc::Status PrepareSnapshot(
      grpc::ServerContext*, const wire::PrepareSnapshotRequest* request,
      wire::PrepareSnapshotResponse* response) override;

 private:
  StateOrders& orders_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_STATE_STATE_SERVICE_H_

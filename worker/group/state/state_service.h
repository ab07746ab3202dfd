#ifndef PARASOL_WORKER_GROUP_STATE_STATE_SERVICE_H_
#define PARASOL_WORKER_GROUP_STATE_STATE_SERVICE_H_

#include "cluster/rights/rights.h"
#include "proto/parameter.grpc.pb.h"
#include "worker/group/state/state_orders.h"

namespace parasol {

// The gRPC service in front of StateOrders. It exchanges no tensors with
// workers: Exchange is answered with UNIMPLEMENTED. Orders are the chief's, who
// may be worker 0 itself.
class StateService : public wire::ParameterService::Service {
 public:
  // `orders` must outlive the service.
  explicit StateService(StateOrders& orders) : orders_(orders) {}

  grpc::Status Load(grpc::ServerContext* context,
                    const wire::LoadRequest* request,
                    wire::LoadResponse* response) override;
  grpc::Status Snapshot(grpc::ServerContext* context,
                        const wire::SnapshotRequest* request,
                        wire::SnapshotResponse* response) override;
  grpc::Status PrepareSnapshot(
      grpc::ServerContext* context, const wire::PrepareSnapshotRequest* request,
      wire::PrepareSnapshotResponse* response) override;

 private:
  StateOrders& orders_;
  const Rights rights_{{.worker0_is_chief = true}};
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_STATE_STATE_SERVICE_H_

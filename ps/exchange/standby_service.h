#ifndef PARASOL_PS_EXCHANGE_STANDBY_SERVICE_H_
#define PARASOL_PS_EXCHANGE_STANDBY_SERVICE_H_

#include "cluster/rights/rights.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "proto/parameter.pb.h"
#include "ps/exchange/exchange_service.h"
#include "ps/standby/standby_host.h"

namespace parasol {

// The calls of other ps to a StandbyHost: they end when the peer, or the host,
// ends them. A stream's messages travel on a lane if the caller asks for one
// and the ps has lanes.
grpc::Status ServeFollow(StandbyHost& host,
                         const ExchangeStream::Environment& environment,
                         grpc::ServerContext& context,
                         grpc::ServerReaderWriter<wire::FollowResponse,
                                                  wire::FollowRequest>& stream);
grpc::Status ServeTakeStandby(StandbyHost& host, const Rights& rights,
                              grpc::ServerContext& context,
                              const wire::TakeStandbyRequest& request,
                              grpc::ServerWriter<wire::StandbyState>& writer);

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_STANDBY_SERVICE_H_

#ifndef PARASOL_CLUSTER_RPC_STATUS_H_
#define PARASOL_CLUSTER_RPC_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace parasol {

// The codes are the same on both sides. Messages longer than what fits into
// gRPC's trailers are cut.
grpc::Status ToGrpcStatus(const absl::Status& status);

// What a unary rpc returns for a server's `result`: fills `response` when it is
// OK.
template <typename Response>
grpc::Status Answer(absl::StatusOr<Response> result, Response* response) {
  if (result.ok()) *response = *std::move(result);
  return ToGrpcStatus(result.status());
}

// `peer` ("chief at h0:2222") is put in front of the message of an error.
absl::Status FromGrpcStatus(const grpc::Status& status, absl::string_view peer);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_STATUS_H_

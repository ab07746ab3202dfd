#ifndef PARASOL_CLUSTER_RPC_STATUS_H_
#define PARASOL_CLUSTER_RPC_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace parasol {

// Returns the status with the same code. A message longer than what fits into
// gRPC's trailers is cut.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Returns what a unary rpc returns for a server's `result`; fills `response` if
// that is OK.
template <typename Response>
grpc::Status Answer(absl::StatusOr<Response> result, Response* response) {
  if (result.ok()) *response = *std::move(result);
  return ToGrpcStatus(result.status());
}

// Returns the status with the same code; `peer` ("chief at h0:2222") is put in
// front of an error's message, which is DescribeCallFailure()'s.
absl::Status FromGrpcStatus(const grpc::Status& status, absl::string_view peer);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_STATUS_H_

#ifndef PARASOL_CLUSTER_RPC_TENSOR_ARGUMENTS_H_
#define PARASOL_CLUSTER_RPC_TENSOR_ARGUMENTS_H_

#include <utility>
#include <vector>

namespace parasol {

// Returns gRPC's integer arguments for connections that carry tensors; the same
// on both sides.
std::vector<std::pair<const char*, int>> TensorArguments();

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_TENSOR_ARGUMENTS_H_

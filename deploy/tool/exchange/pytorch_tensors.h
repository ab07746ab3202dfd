#ifndef PARASOL_DEPLOY_TOOL_EXCHANGE_PYTORCH_TENSORS_H_
#define PARASOL_DEPLOY_TOOL_EXCHANGE_PYTORCH_TENSORS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "proto/job.pb.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// Returns "hidden.weight" of "hidden/kernel"; "" if PyTorch has no such
// variable.
std::string PyTorchName(const std::string& variable);

// Returns a reader of the same tensors in which those of a PyTorch state_dict
// have a job's names and layouts: "hidden.weight" [outputs, inputs] becomes
// "hidden/kernel" [inputs, outputs], a convolution's [outputs, inputs, height,
// width] becomes [height, width, inputs, outputs], and so do the statistics of
// a batch normalization. Tensors that have a job's name already, or none, stay.
// A tensor with another layout is in memory as a whole while it is read.
//   InvalidArgument  the job flattens images between convolutions and dense
//                    layers: PyTorch numbers their elements in another order.
absl::StatusOr<std::unique_ptr<TensorReader>> TranslatePyTorch(
    std::unique_ptr<TensorReader> reader, const CheckpointContents& contents,
    const job::Model& model);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_EXCHANGE_PYTORCH_TENSORS_H_

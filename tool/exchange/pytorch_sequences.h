#ifndef PARASOL_TOOL_EXCHANGE_PYTORCH_SEQUENCES_H_
#define PARASOL_TOOL_EXCHANGE_PYTORCH_SEQUENCES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// Returns a reader of the same tensors in which a PyTorch state_dict's
// recurrent layers and attention have become a job's variables, as
// float32:
//
//   read.weight_ih_l0, weight_hh_l0  transposed: read/kernel,
//     recurrent_kernel; a GRU's gates r, z, n in the job's order
//   read.bias_ih_l0 and bias_hh_l0   their sum: the bias of an LSTM; as two
//     rows: a GRU's
//   …_l0_reverse                     read/backward/…, beside read/forward/…
//   look.in_proj_weight, in_proj_bias  look/query/…, key/…, value/…, by heads
//   look.out_proj.weight, out_proj.bias  look/attention_output/…
//
// Variables whose tensors are not there, or that are there by their own names,
// are left alone. A tensor that is made is in memory as a whole.
//   InvalidArgument  tensors of a layer have other shapes than its variables
//                    ask for: names one.
absl::StatusOr<std::unique_ptr<TensorReader>> TranslatePyTorchSequences(
    std::unique_ptr<TensorReader> reader, const CheckpointContents& contents);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_PYTORCH_SEQUENCES_H_

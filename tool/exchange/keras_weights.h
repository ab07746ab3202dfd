#ifndef PARASOL_TOOL_EXCHANGE_KERAS_WEIGHTS_H_
#define PARASOL_TOOL_EXCHANGE_KERAS_WEIGHTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "proto/job.pb.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// Returns a reader of the same tensors, in which tensors of Keras's
// save_weights() without names (KerasVariableNames()) have the job's names, as
// far as shapes tell which they are:
//   "layers/dense_1/kernel"  of layers without names, the job's layer with
//                            variables of the same names and shapes;
//   "optimizer/vars/5"       the slots of the job's variables in their order,
//                            where the model is a chain of layers without
//                            tables, and the optimizer the file's, without
//                            options that add slots (momentum, amsgrad).
// What can't be told stays, and MatchTensors() names it. The layers of a model
// that is a class of its own have an order of their own, and files don't say
// of what class a model is.
//   InvalidArgument  several layers without names are alike; or slots of two
//                    layers could be swapped, unless `allow_surplus`, by which
//                    they are left out; or an optimizer's variable has no
//                    number.
absl::StatusOr<std::unique_ptr<TensorReader>> NameKerasWeights(
    std::unique_ptr<TensorReader> reader, const CheckpointContents& contents,
    const job::Job& job, bool allow_surplus = false);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_KERAS_WEIGHTS_H_

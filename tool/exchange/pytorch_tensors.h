#ifndef PARASOL_TOOL_EXCHANGE_PYTORCH_TENSORS_H_
#define PARASOL_TOOL_EXCHANGE_PYTORCH_TENSORS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "storage/tensor_files/tensor_reader.h"
#include "tool/exchange/flat_orders.h"

namespace parasol {

// Returns "hidden.weight" of "hidden/kernel"; "" if PyTorch has no such
// variable.
std::string PyTorchName(const std::string& variable);

// Returns the axes of PyTorch's kernel `variable` in the order in which they
// are here; empty if it is none, or has another number of axes.
std::vector<size_t> PyTorchKernelAxes(const std::string& variable, size_t rank);

// Returns the error of a variable whose RowOrder is not known.
absl::Status UnknownRowOrder(const std::string& variable);

// Returns a reader of the same tensors that gives a PyTorch state_dict's
// tensors a job's names and layouts: "hidden.weight" [outputs, inputs] becomes
// "hidden/kernel" [inputs, outputs], a convolution's [outputs, inputs, height,
// width] becomes [height, width, inputs, outputs], and so do the statistics of
// a batch normalization. Tensors that have a job's name already, or none, stay.
// A tensor with another layout is in memory as a whole while it is read.
// `orders` are ChannelsFirstOrders() of the job's model: rows behind a
// flattened image get the job's order.
//   InvalidArgument  the order of a tensor's rows can't be told.
absl::StatusOr<std::unique_ptr<TensorReader>> TranslatePyTorch(
    std::unique_ptr<TensorReader> reader, const CheckpointContents& contents,
    const std::map<std::string, RowOrder>& orders);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_PYTORCH_TENSORS_H_

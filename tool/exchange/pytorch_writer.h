#ifndef PARASOL_TOOL_EXCHANGE_PYTORCH_WRITER_H_
#define PARASOL_TOOL_EXCHANGE_PYTORCH_WRITER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/tensor_files/tensor.h"
#include "storage/tensor_files/tensor_writer.h"
#include "tool/exchange/flat_orders.h"

namespace parasol {

// Makes a writer of some parts.
using NewTensorWriter =
    std::function<absl::StatusOr<std::unique_ptr<TensorWriter>>(
        std::vector<TensorPart>)>;

// Returns a writer of `parts`, a job's variables and tables, that writes them
// as a PyTorch state_dict has them, the reverse of TranslatePyTorch(): with
// PyTorch's names and layouts, and with the rows of `orders`
// (ChannelsFirstOrders()) in its order. A tensor with another layout is in
// memory as a whole. `create` makes the writer of the file.
//   InvalidArgument  the order of a tensor's rows can't be told, or two tensors
//                    have one name there.
//   any other        as for `create`.
absl::StatusOr<std::unique_ptr<TensorWriter>> NewPyTorchWriter(
    const std::vector<TensorPart>& parts,
    const std::map<std::string, RowOrder>& orders,
    const NewTensorWriter& create);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_PYTORCH_WRITER_H_

#ifndef PARASOL_TOOL_EXCHANGE_FOREIGN_TENSORS_H_
#define PARASOL_TOOL_EXCHANGE_FOREIGN_TENSORS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "proto/job.pb.h"
#include "storage/tensor_files/tensor.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// Returns Keras's name of a recurrent layer's tensor as it is here: without the
// cell, and with the direction alone of the layers of a Bidirectional.
// "b/forward_lstm/lstm_cell/kernel" is "b/forward/kernel".
std::string WithoutRecurrentCell(absl::string_view name);

// Returns what stands in front of a model's names in a file: "sequential/" of
// Keras's Sequential, "module." of PyTorch's DataParallel. "" if the names of
// `contents` are there without it, or less than half of them with it, or if
// two parts of the file have them. Pure.
std::string FrontOfNames(const std::vector<TensorInfo>& tensors,
                         const CheckpointContents& contents);

// Returns a reader of the same tensors with the names of tensor_names.h:
// without FrontOfNames(); slots of Keras 3 ("adam/hidden_kernel_momentum") as
// older versions name them; and the table of an embedding layer,
// "users/embeddings" or PyTorch's "users.weight" [ids, width], as the rows with
// the ids 0, 1, … Layouts stay: TranslatePyTorch() comes behind.
std::unique_ptr<TensorReader> TranslateForeign(
    std::unique_ptr<TensorReader> reader, const CheckpointContents& contents,
    const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_FOREIGN_TENSORS_H_

#ifndef PARASOL_TOOL_EXCHANGE_EXPORT_H_
#define PARASOL_TOOL_EXCHANGE_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "storage/tensor_files/tensor_format.h"

namespace parasol {

struct ExportOptions {
  TensorFormat format = TensorFormat::kSafetensors;
  // A file, a TensorFlow checkpoint's prefix, or a directory for CSV. Beside it
  // come "<output>.job.textproto" and the vocabularies of the job's columns,
  // "<output>.vocabulary.<input>.<column>.txt", a value in each line.
  std::string output = {};
  // True to write the values as a PyTorch state_dict has them
  // (NewPyTorchWriter()), without slots and counts.
  bool pytorch_layout = false;
  // True to export the optimizer's slots, too.
  bool slots = true;
  // True to export the moving averages in place of the variables that have
  // them.
  bool averages = true;
};

// Exports the checkpoint at `path`, as CheckpointAt() understands it. The
// memory that this needs does not grow with the model. Nothing has its name
// before it is complete, the tensors last.
//   InvalidArgument  the names or the output don't fit the format.
//   any other        as for reading checkpoints and writing files.
absl::Status Export(const std::string& path, const ExportOptions& options);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_EXPORT_H_

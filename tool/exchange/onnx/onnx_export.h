#ifndef PARASOL_TOOL_EXCHANGE_ONNX_ONNX_EXPORT_H_
#define PARASOL_TOOL_EXCHANGE_ONNX_ONNX_EXPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace parasol {

struct OnnxExportOptions {
  std::string output = {};  // the model's file, "model.onnx"
  // Bytes of all tensors up to which they are in the model's file. More are in
  // a file of their own, "<output>.data", which must stay beside it.
  int64_t inline_bytes = int64_t{64} << 20;
  // True to export the moving averages in place of the variables that have
  // them.
  bool averages = true;
};

// Exports the model of the checkpoint at `path`, as CheckpointAt() understands
// it, to an ONNX file (MakeOnnxGraph), with the job and its vocabularies beside
// it. The memory that this needs grows with the number of the tables' ids, not
// with their rows or the variables. Nothing has its name before it is complete,
// the model last.
//   InvalidArgument  the checkpoint's job can't be used; a table has more ids
//                    than a file of ONNX takes.
//   any other        as for MakeOnnxGraph(), reading checkpoints and writing
//                    files.
absl::Status ExportOnnx(const std::string& path,
                        const OnnxExportOptions& options);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_ONNX_ONNX_EXPORT_H_

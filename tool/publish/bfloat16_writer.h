#ifndef PARASOL_TOOL_PUBLISH_BFLOAT16_WRITER_H_
#define PARASOL_TOOL_PUBLISH_BFLOAT16_WRITER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/tensor_files/tensor_writer.h"
#include "tool/exchange/pytorch_writer.h"

namespace parasol {

// Returns a writer of `parts` that writes what is float32 as bfloat16, rounded
// to nearest, ties to even, and the rest as it is. `create` makes the writer of
// the file; fails as that does.
absl::StatusOr<std::unique_ptr<TensorWriter>> NewBfloat16Writer(
    const std::vector<TensorPart>& parts, const NewTensorWriter& create);

}  // namespace parasol

#endif  // PARASOL_TOOL_PUBLISH_BFLOAT16_WRITER_H_

#ifndef PARASOL_STORAGE_TENSOR_FILES_KERAS_READER_H_
#define PARASOL_STORAGE_TENSOR_FILES_KERAS_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// Opens what Keras saves: a model (`.keras`), its weights (`.weights.h5`), or
// either as older versions did (`.h5`). Tensors have Keras's full names
// (KerasVariableNames()). The weights in a `.keras` are read once as a whole
// for their checksum.
//   NotFound         there is no such file.
//   DataLoss         it is damaged; the message names the byte.
//   InvalidArgument  it is compressed, or of a form that is not read; or
//                    variables can't be told apart.
//   Unavailable      the file system refuses.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenKeras(
    const std::string& path);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_KERAS_READER_H_

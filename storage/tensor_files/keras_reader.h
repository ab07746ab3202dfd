#ifndef PARASOL_STORAGE_TENSOR_FILES_KERAS_READER_H_
#define PARASOL_STORAGE_TENSOR_FILES_KERAS_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// Opens what Keras saves: a model (`.keras`), weights (`.weights.h5`), or
// either in the older form (`.h5`). Tensors have Keras's full names as far as
// the file tells them (KerasVariableNames()); copies of others are left out.
// The weights in a `.keras` are read as a whole first, for their checksum.
//   NotFound         there is no such file.
//   DataLoss         it is damaged; the message names the byte of the HDF5, or
//                    the member of the archive.
//   InvalidArgument  it is compressed, or of a form that is not read; its
//                    config.json is no JSON; or variables can't be told apart.
//   Unavailable      the file system refuses.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenKeras(
    const std::string& path);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_KERAS_READER_H_

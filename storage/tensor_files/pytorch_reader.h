#ifndef PARASOL_STORAGE_TENSOR_FILES_PYTORCH_READER_H_
#define PARASOL_STORAGE_TENSOR_FILES_PYTORCH_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// Opens what torch.save() has written of a state_dict (PyTorch 1.6 and later: a
// ZIP archive). Nothing of the file is executed. Tensors in dictionaries of
// dictionaries have names with dots, "model.hidden.weight".
//   NotFound         there is no such file.
//   DataLoss         it is no such archive, or it is damaged.
//   InvalidArgument  it has no tensors by name, or one that is not contiguous,
//                    or the bytes of a machine that begins with the highest.
//   Unavailable      the file system refuses.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenPyTorch(
    const std::string& path);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_PYTORCH_READER_H_

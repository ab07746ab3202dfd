#ifndef PARASOL_STORAGE_TENSOR_FILES_SAFETENSORS_READER_H_
#define PARASOL_STORAGE_TENSOR_FILES_SAFETENSORS_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// Opens a safetensors file.
//   NotFound     there is none.
//   DataLoss     its header is damaged, or says what can't be.
//   Unavailable  the file system refuses.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenSafetensors(
    const std::string& path);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_SAFETENSORS_READER_H_

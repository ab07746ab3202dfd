#ifndef PARASOL_STORAGE_TENSOR_FILES_SAFETENSORS_WRITER_H_
#define PARASOL_STORAGE_TENSOR_FILES_SAFETENSORS_WRITER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/tensor_files/tensor_writer.h"

namespace parasol {

// Creates a writer of a safetensors file: 8 bytes with the length of a JSON
// header, the header, and the tensors' bytes without gaps. The header's
// "__metadata__" has `metadata`, too.
//   InvalidArgument  two tensors have one name.
//   any other        as for storage/durable_file.h.
absl::StatusOr<std::unique_ptr<TensorWriter>> NewSafetensorsWriter(
    const std::string& path, std::vector<TensorPart> parts,
    const std::map<std::string, std::string>& metadata = {});

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_SAFETENSORS_WRITER_H_

#ifndef PARASOL_STORAGE_TENSOR_FILES_NPZ_WRITER_H_
#define PARASOL_STORAGE_TENSOR_FILES_NPZ_WRITER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/tensor_files/tensor_writer.h"
#include "storage/tensor_files/zip_writer.h"

namespace parasol {

// Creates a writer of numpy's .npz: a ZIP archive with a stored member
// "<name>.npy" for each tensor.
//   InvalidArgument  two tensors have one name, or a name is too long.
//   any other        as for storage/durable_file.h.
absl::StatusOr<std::unique_ptr<TensorWriter>> NewNpzWriter(
    const std::string& path, std::vector<TensorPart> parts,
    ZipWriter::Options options = {});

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_NPZ_WRITER_H_

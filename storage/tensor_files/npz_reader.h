#ifndef PARASOL_STORAGE_TENSOR_FILES_NPZ_READER_H_
#define PARASOL_STORAGE_TENSOR_FILES_NPZ_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// Opens a file of numpy.savez or numpy.savez_compressed. Members that are no
// arrays are left out. Errors as for ZipReader and ParseNpyHeader().
absl::StatusOr<std::unique_ptr<TensorReader>> OpenNpz(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_NPZ_READER_H_

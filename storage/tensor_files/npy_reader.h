#ifndef PARASOL_STORAGE_TENSOR_FILES_NPY_READER_H_
#define PARASOL_STORAGE_TENSOR_FILES_NPY_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// Opens a file of numpy.save: one tensor, called `name`. Errors as for
// SizedFile::Open() and ReadNpyHeader().
absl::StatusOr<std::unique_ptr<TensorReader>> OpenNpy(const std::string& path,
                                                      const std::string& name);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_NPY_READER_H_

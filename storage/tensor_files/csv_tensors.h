#ifndef PARASOL_STORAGE_TENSOR_FILES_CSV_TENSORS_H_
#define PARASOL_STORAGE_TENSOR_FILES_CSV_TENSORS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/tensor_files/tensor_reader.h"
#include "storage/tensor_files/tensor_writer.h"

// Tensors as text: a directory with a file for each tensor, one line for each
// index of all axes but the last, and the file tensors.csv that lists them:
//
//   tensor,dtype,shape,file
//   dense/kernel,float32,784 10,0-dense_kernel.csv
//
// Numbers have as many digits as it takes to read the same bits back.
namespace parasol {

inline constexpr absl::string_view kCsvListName = "tensors.csv";

// Creates a writer of the directory `path`, which must not exist: its files are
// written under a StagedNameOf() before.
//   InvalidArgument  `path` exists, or a name has a quote or a line's end.
//   any other        as for storage/durable_file.h.
absl::StatusOr<std::unique_ptr<TensorWriter>> NewCsvWriter(
    const std::string& path, std::vector<TensorPart> parts);

// Opens such a directory. Tensors are read in order: reading back begins anew.
//   NotFound         there is no such directory.
//   DataLoss         the list of tensors is damaged.
//   any other        as for storage/durable_file.h.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenCsv(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_CSV_TENSORS_H_

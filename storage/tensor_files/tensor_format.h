#ifndef PARASOL_STORAGE_TENSOR_FILES_TENSOR_FORMAT_H_
#define PARASOL_STORAGE_TENSOR_FILES_TENSOR_FORMAT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// The formats in which models leave and come in. PyTorch's and Keras's own are
// read only.
enum class TensorFormat {
  kSafetensors,
  kNpz,
  kTensorFlow,
  kCsv,
  kPyTorch,
  kKeras
};

// Returns the format that --format names.
//   InvalidArgument  there is no such format; the message names them all.
absl::StatusOr<TensorFormat> ParseTensorFormat(absl::string_view name);

// Returns the format of the files at `path`, by its suffix or by what lies
// there.
//   NotFound         nothing that is known lies there; the message says how
//                    tensors leave other programs in a format that is.
absl::StatusOr<TensorFormat> FormatOfFilesAt(const std::string& path);

// Opens the tensors at `path`: a file, the prefix of a TensorFlow checkpoint, a
// directory whose newest one is meant, a SavedModel, or the directory of a CSV
// export. Errors as for the format's reader.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenTensors(
    TensorFormat format, const std::string& path);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_TENSOR_FORMAT_H_

#ifndef PARASOL_STORAGE_TENSOR_FILES_NPY_HEADER_H_
#define PARASOL_STORAGE_TENSOR_FILES_NPY_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/tensor_files/tensor.h"

// The header of numpy's .npy: magic, version, length, and a Python dictionary
// with type, order and shape.
namespace parasol {

// Bytes that say how long the header is, at most.
inline constexpr size_t kNpyPrefixBytes = 12;

// Returns the header of a tensor, with a length that is a multiple of 64 and at
// least `min_bytes`. bfloat16, which numpy lacks, is its bits as uint16.
std::string NpyHeader(const TensorInfo& tensor, size_t min_bytes = 0);

// Returns the bytes of the whole header that begins with `prefix`.
//   DataLoss  it is no .npy header, or a very long one.
absl::StatusOr<size_t> NpyHeaderBytes(absl::string_view prefix);

// Returns the tensor, without a name, that `header` describes. A type that is
// not known here is kOther.
//   DataLoss         it is no .npy header.
//   InvalidArgument  the elements are in Fortran's order.
absl::StatusOr<TensorInfo> ParseNpyHeader(absl::string_view header);

// An array as the header of an .npy file describes it.
struct NpyArray {
  TensorInfo tensor = {};  // the name is empty
  uint64_t data = 0;       // first byte of its elements
};

// Reads the header of an .npy file of `size` bytes, which `read` reads.
//   DataLoss   the file has another number of bytes than its shape takes; and
//              as for ParseNpyHeader().
//   any other  of `read`.
absl::StatusOr<NpyArray> ReadNpyHeader(
    uint64_t size,
    absl::FunctionRef<absl::Status(uint64_t offset, absl::Span<char> out)>
        read);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_NPY_HEADER_H_
